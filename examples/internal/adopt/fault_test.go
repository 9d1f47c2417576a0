package adopt_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/adopt"
	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/internal/proof/faultdisk"
	"github.com/tidemark-go/tidemark/tsdb"
)

// TestClockSetBack: after the clock was days ahead in one pass, the next one does not leave out what was written since.
func TestClockSetBack(t *testing.T) {
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) {
			w := newWorld(t)
			table := w.create(l.name)
			l.put(t, table, devices, 0, perDevice, 0)
			s := l.source(t, table)
			right := w.clock
			w.clock = right.Add(72 * time.Hour)
			state, err := s.Copy(t.Context(), w.store, adopt.CopyOptions{Rate: 10_000_000})
			w.ok(err)
			w.clock = right.Add(time.Minute)
			began := written
			written = micros(w.clock)
			defer func() { written = began }()
			l.put(t, table, devices, perDevice-3, perDevice+5, 1)
			state, err = s.Copy(t.Context(), w.store, adopt.CopyOptions{State: state, Rate: 10_000_000})
			w.ok(err)
			w.verify(s, devices*(perDevice+5))
			if state.Started.After(w.clock) || state.Pass != 2 {
				t.Errorf("pass %d, started %v; want pass 2, started by the clock of now, %v", state.Pass, state.Started, w.clock)
			}
			w.clock = w.clock.Add(time.Minute)
			state, err = s.Copy(t.Context(), w.store, adopt.CopyOptions{State: state, Rate: 10_000_000})
			w.ok(err)
			if state.Since == nil || state.Since.After(w.clock) {
				t.Errorf("the pass after it copies from %v on, want the start of the pass before", state.Since)
			}
		})
	}
}

// TestStateCannotBeSaved: a copy whose state cannot be saved, as on a full disk, ends with that error. The state that
// was saved before continues it, and no point is left out.
func TestStateCannotBeSaved(t *testing.T) {
	l := layouts[0]
	w := newWorld(t)
	table := w.create(l.name)
	l.put(t, table, devices, 0, perDevice, 0)
	s := l.source(t, table)
	var saved adopt.State
	saves := 0
	full := func(state adopt.State) error {
		if saves++; saves > 1 {
			return syscall.ENOSPC
		}
		saved = state
		return nil
	}
	_, err := s.Copy(t.Context(), w.store, adopt.CopyOptions{Rate: 10_000_000, Save: full})
	if !errors.Is(err, syscall.ENOSPC) && saves > 1 {
		t.Errorf("saved %d times: %v, want ENOSPC", saves, err)
	}
	for pass := 0; pass < 2; pass++ { // the pass that is not saved as complete, and its repetition from what was
		state, err := s.Copy(t.Context(), w.store, adopt.CopyOptions{State: saved, Rate: 10_000_000, Save: full})
		if !errors.Is(err, syscall.ENOSPC) || !state.Complete() {
			t.Errorf("a state that cannot be saved: %v, complete %v; want ENOSPC", err, state.Complete())
		}
	}
	_, err = s.Copy(t.Context(), w.store, adopt.CopyOptions{State: saved, Rate: 10_000_000})
	w.ok(err)
	w.verify(s, devices*perDevice)
}

// TestFullDisk: a copy into a store whose disk fails ends with an error, and its state does not count what is not
// stored. After the store has been opened again, it continues, and has each point.
func TestFullDisk(t *testing.T) {
	l := layouts[0]
	w := newWorld(t)
	table := w.create(l.name)
	const many = 2000 // more than one range of keys, and one chunk
	l.put(t, table, devices, 0, many, 0)
	s := l.source(t, table)
	disk := faultdisk.New()
	open := func(o engine.Options) (store *tsdb.Store, end func()) {
		o.Dir, o.GCInterval, o.Clock = "table", -1, func() time.Time { return w.clock }
		server, err := local.Open(o)
		w.ok(err)
		conn, err := server.Dial(tsdb.DialOptions()...)
		w.ok(err)
		client, admin, err := local.Clients(t.Context(), conn)
		w.ok(err)
		store, err = tsdb.New(client, "tidemark", tsdb.Options{Admin: admin, StoreOptions: tsdb.StoreOptions{
			Clock: o.Clock, Timeouts: tsdb.Timeouts{Read: time.Second, Write: time.Second, Scan: 5 * time.Second},
		}})
		w.ok(err)
		return store, func() {
			_ = store.Close()
			_ = client.Close()
			_ = admin.Close()
			_ = server.Close()
		}
	}
	store, end := open(engine.Options{FS: disk})
	var saved adopt.State
	saves := 0
	began := time.Now()
	state, err := s.Copy(t.Context(), store, adopt.CopyOptions{Rate: 10_000, Concurrency: 1, Save: func(state adopt.State) error {
		if saves++; saves == 1 {
			disk.Fail()
		}
		saved = state
		return nil
	}})
	if err == nil || !errors.Is(err, tsdb.ErrUnknown) && !errors.Is(err, tsdb.ErrRejected) {
		t.Errorf("on a disk that fails: %v, want ErrUnknown or ErrRejected", err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v to notice", took)
	}
	if state.Complete() || state.Points >= devices*many || saved.Points != state.Points {
		t.Errorf("the state has %d points, complete %v, saved %d; want some", state.Points, state.Complete(), saved.Points)
	}
	t.Logf("saved %d times; %d points; %v", saves, state.Points, err)
	after := disk.Crash()
	end()
	store, end = open(engine.Options{FS: after})
	defer end()
	_, err = s.Copy(t.Context(), store, adopt.CopyOptions{State: saved, Rate: 10_000_000})
	w.ok(err)
	v, err := s.Verify(t.Context(), store, adopt.VerifyOptions{})
	w.ok(err)
	if !v.Same() || v.Stored != devices*many {
		t.Errorf("after the disk works again: %+v, want %d equal points", v, devices*many)
	}
}
