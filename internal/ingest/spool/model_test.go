package spool_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

var (
	seed  = flag.Uint64("spool.seed", 1, "seed of the random tests")
	steps = flag.Int("spool.steps", 400, "number of random steps to compare with the model")
)

// model holds the expected contents of a spool in plain maps.
type model struct {
	records map[uint64]string
	dead    map[uint64]string // by id
	metas   map[string]string
	next    uint64
}

func (m *model) all() []string {
	var out []string
	for _, seq := range slices.Sorted(maps.Keys(m.records)) {
		out = append(out, fmt.Sprintf("%d:%s", seq, m.records[seq]))
	}
	return out
}

// pick draws up to n keys, mostly the smallest ones, as delivery does.
func pick[V any](r *rand.Rand, from map[uint64]V, n int) []uint64 {
	keys := slices.Sorted(maps.Keys(from))
	var out []uint64
	for range min(n, len(keys)) {
		at := r.IntN(len(keys))
		if r.IntN(3) > 0 {
			at = r.IntN(min(len(keys), 50))
		}
		out = append(out, keys[at])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func text(r *rand.Rand) string {
	n := r.IntN(300)
	switch r.IntN(40) {
	case 0:
		n = r.IntN(100 << 10)
	case 1:
		n = 0
	}
	out := make([]byte, n)
	for i := range out {
		out[i] = 'a' + byte(r.IntN(26))
	}
	return string(out)
}

// After any sequence of calls the spool holds the same as the model, also after a restart. After a crash of its process
// it holds at least that.
func TestAgainstModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(*seed, 1))
		dir, o := t.TempDir(), spool.Options{NoSync: true}
		s := open(t, dir, o)
		m := &model{map[uint64]string{}, map[uint64]string{}, map[string]string{}, 0}
		for step := range *steps {
			switch k := r.IntN(100); {
			case k < 40:
				var texts []string
				for range 1 + r.IntN(60) {
					texts = append(texts, text(r))
				}
				first := appendAll(t, s, texts...)
				if first != m.next {
					t.Fatalf("step %d: sequence number %d, want %d", step, first, m.next)
				}
				for i, text := range texts {
					m.records[first+uint64(i)] = text
				}
				m.next += uint64(len(texts))
			case k < 70:
				done := pick(r, m.records, 1+r.IntN(100))
				s.Done(done...)
				for _, seq := range done {
					delete(m.records, seq)
				}
			case k < 75:
				var letters []spool.Dead
				for _, seq := range pick(r, m.records, 1+r.IntN(10)) {
					d := spool.Dead{Seq: seq, Reason: fmt.Sprint(step)}
					if r.IntN(2) == 0 {
						d.Data = []byte("another")
					}
					letters = append(letters, d)
				}
				asked := slices.Clone(letters)
				if seq := r.Uint64N(m.next + 1); seq < m.next {
					if _, ok := m.records[seq]; !ok {
						asked = append(asked, spool.Dead{Seq: seq}) // Done before: Bury skips it.
					}
				}
				if err := s.Bury(t.Context(), asked...); err != nil {
					t.Fatal(err)
				}
				for _, d := range letters {
					if d.Data != nil {
						m.records[d.Seq] = string(d.Data)
					}
				}
				m.bury(t, s, letters)
			case k < 78:
				ids := pick(r, m.dead, 1+r.IntN(10))
				n, err := s.Revive(t.Context(), ids...)
				if err != nil || n != len(ids) {
					t.Fatalf("step %d: revived %d of %d, %v", step, n, len(ids), err)
				}
				for _, id := range ids {
					m.records[m.next] = m.dead[id]
					m.next++
					delete(m.dead, id)
				}
			case k < 80:
				ids := pick(r, m.dead, 1+r.IntN(4))
				if n, err := s.Drop(t.Context(), ids...); err != nil || n != len(ids) {
					t.Fatalf("step %d: dropped %d of %d, %v", step, n, len(ids), err)
				}
				for _, id := range ids {
					delete(m.dead, id)
				}
			case k < 84:
				name, value := string('a'+rune(r.IntN(5))), text(r)
				if err := s.SetMeta(t.Context(), name, []byte(value)); err != nil {
					t.Fatal(err)
				}
				m.metas[name] = value
			case k < 90:
				time.Sleep(time.Duration(r.IntN(400)) * time.Millisecond)
			case k < 93:
				s = reopen(t, s, dir, o)
			case k < 96:
				m.checkCopy(t, dir, o)
			default:
				m.check(t, s)
			}
			if t.Failed() {
				t.Fatalf("failed in step %d of -spool.seed=%d", step, *seed)
			}
		}
		m.check(t, s)
		m.check(t, reopen(t, s, dir, o))
	})
}

// bury moves records to the model's dead letters, under the ids that the spool assigned.
func (m *model) bury(t *testing.T, s *spool.Spool, buried []spool.Dead) {
	t.Helper()
	found := letters(t, s)
	if len(found) != len(m.dead)+len(buried) {
		t.Fatalf("got %d dead letters, want %d", len(found), len(m.dead)+len(buried))
	}
	for i, d := range found[len(m.dead):] {
		if d.Seq != buried[i].Seq || string(d.Data) != m.records[d.Seq] || d.Reason != buried[i].Reason {
			t.Fatalf("got dead letter %+v, want %+v", d, buried[i])
		}
		m.dead[d.ID] = string(d.Data)
		delete(m.records, d.Seq)
	}
}

func (m *model) check(t *testing.T, s *spool.Spool) {
	t.Helper()
	if got, want := all(t, s), m.all(); !slices.Equal(got, want) {
		t.Errorf("got %d records, want %d", len(got), len(want))
	}
	m.checkRest(t, s)
	st := s.Stats()
	if st.Records != len(m.records) || st.Next != m.next || st.Dead != len(m.dead) {
		t.Errorf("got stats %+v, want %d records, %d dead letters, next %d", st, len(m.records), len(m.dead), m.next)
	}
	if len(m.records) > 0 && st.First != slices.Min(slices.Collect(maps.Keys(m.records))) {
		t.Errorf("got stats %+v with a wrong First", st)
	}
}

func (m *model) checkRest(t *testing.T, s *spool.Spool) {
	t.Helper()
	dead := map[uint64]string{}
	for _, d := range letters(t, s) {
		dead[d.ID] = string(d.Data)
	}
	if !maps.Equal(dead, m.dead) {
		t.Errorf("got %d dead letters, want %d", len(dead), len(m.dead))
	}
	metas := map[string]string{}
	for name, value := range s.Metas() {
		metas[name] = string(value)
	}
	if !maps.Equal(metas, m.metas) {
		t.Errorf("got metas %.100q, want %.100q", metas, m.metas)
	}
}

// checkCopy opens a copy of the folder, as a crash of the process would leave it now. Recently done records may be
// back.
func (m *model) checkCopy(t *testing.T, dir string, o spool.Options) {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	s, err := spool.Open(copied, o)
	if err != nil {
		t.Fatalf("after a crash of the process: %v", err)
	}
	defer s.Close()
	got := all(t, s)
	there := map[string]bool{}
	for _, text := range got {
		there[text] = true
	}
	for _, text := range m.all() {
		if !there[text] {
			t.Errorf("after a crash of the process a record is missing: %.40s", text)
		}
	}
	m.checkRest(t, s)
	if next := s.Stats().Next; next != m.next+gap {
		t.Errorf("after a crash of the process the next sequence number is %d, want %d", next, m.next+gap)
	}
}

// TestStragglersDoNotKeepTheRoom checks that a few records that cannot be delivered neither keep the space of their
// blocks nor use much memory.
func TestStragglersDoNotKeepTheRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, o := t.TempDir(), spool.Options{NoSync: true}
		s := open(t, dir, o)
		r := rand.New(rand.NewPCG(*seed, 2))
		m := &model{map[uint64]string{}, map[uint64]string{}, map[string]string{}, 0}
		for range 100 {
			texts := make([]string, 100)
			for i := range texts {
				texts[i] = string(make([]byte, 200))
			}
			appendAll(t, s, texts...)
			m.next += 100
		}
		full := s.Stats().Bytes
		for seq := range m.next {
			if r.IntN(200) == 0 {
				m.records[seq] = string(make([]byte, 200))
			} else {
				s.Done(seq)
			}
			if seq%1000 == 999 {
				time.Sleep(time.Second)
			}
		}
		time.Sleep(time.Second)
		st := s.Stats()
		if need := int64(len(m.records)) * 220; st.Bytes > need+8<<10 {
			t.Errorf("%d undelivered records of %d: got %d of %d bytes, want about %d", len(m.records), m.next, st.Bytes, full, need)
		}
		m.check(t, s)
		m.check(t, reopen(t, s, dir, o))
	})
}
