package crash_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/crash"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

func TestMain(m *testing.M) {
	flag.Parse() // a workload has the flags of the test
	crash.Workloads(map[string]func(crash.Process) error{"everything": everything, "open": opening})
	os.Exit(m.Run())
}

var (
	acme   = tenant.MustParse("acme")
	number = []rollup.Measure[int64]{{Name: "n", Int: func(v int64) (int64, bool) { return v, true }, Max: 1e6}}
	day    = window.Days(1)

	byStream  = rollup.MustDefine("stream", day, number, rollup.Options{Mode: rollup.ByStream})
	byMessage = rollup.MustDefine("message", day, number, rollup.Options{Mode: rollup.ByMessage, Remember: 30 * 24 * time.Hour})
	byOnce    = rollup.MustDefine("once", day, number, rollup.Options{Mode: rollup.Once})

	plain  = tsdb.MustDefine("plain", tsdb.Key("device"), codec.Int64(), tsdb.SchemaOptions{})
	heads  = tsdb.MustDefine("heads", tsdb.Key("device"), codec.Int64(), tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 2}})
	merged = tsdb.MustDefine("merged", tsdb.Key("device"), codec.Records(), tsdb.SchemaOptions{Merge: true})
	queued = tsdb.MustDefine("queued", tsdb.Key("device"), codec.Int64(), tsdb.SchemaOptions{}) // through the journal
	once   = tsdb.MustDefine("once", tsdb.Key("device"), codec.Int64(), tsdb.SchemaOptions{FirstWins: true})
	sums   = tsdb.MustDefine("sums", tsdb.Key("device"), codec.Int64(), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{byStream, byMessage, byOnce}})

	counted = tsdb.NewEntity("c")
)

// start is the time of the first point. Of a message, a row remembers when it came, so events have the day of the run.
var start = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

func at(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }

func device(n int) tsdb.Entity { return tsdb.NewEntity(fmt.Sprint("d", n)) }

// world is an open store with an open writer.
type world struct {
	store *tsdb.Store
	w     *tsdb.Writer
	dir   string
	// patience is how long an operation may take. What takes longer is unknown.
	patience time.Duration
	note     func(format string, args ...any)
}

// patienceOf is long, because machines are busy, and short where operations wait in vain.
func patienceOf(f crash.Fault) time.Duration {
	if f.Errno == 0 {
		return 30 * time.Second
	}
	return 300 * time.Millisecond
}

func open(ctx context.Context, dir string, patience time.Duration) (*world, error) {
	store, err := embedded.New(ctx, embedded.Options{
		StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Read: patience, Write: patience, Scan: 2 * patience}},
		Dir:          filepath.Join(dir, "new", "data", "store"),
	})
	if err != nil {
		return nil, err
	}
	if err := store.Ensure(ctx, plain, heads, merged, queued, once, sums); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	w, err := store.NewWriter(tsdb.WriterOptions{Linger: -1, Journal: tsdb.JournalOptions{Dir: filepath.Join(dir, "new", "spool", "journal"), MaxBytes: 16 << 20}})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &world{store: store, w: w, dir: dir, patience: patience}, nil
}

func (w *world) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	return errors.Join(w.w.Close(ctx), w.store.Close())
}

// step is an operation of the workload. Its effects become true if it is acknowledged, and may become true if its
// outcome is unknown.
type step struct {
	name    string
	effects []effect
	run     func(context.Context, *world) error // one error for each effect, joined by outcomes, or one for all
}

// effect is a change of what is stored under a key.
type effect struct{ key, value string }

// outcomes is an error for each effect of a step.
type outcomes []error

func (o outcomes) Error() string { return errors.Join(o...).Error() }

// Steps that the ledger knows by their names. The first one closes and opens everything.
const (
	reopens     = "reopen"
	deletesAll  = "delete all"
	dropsLetter = "drop a dead letter"
	enqueues    = "enqueue a first point"
)

// steps returns the operations of a seed.
func steps(seed uint64, n int) (list []step) {
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range n {
		v, d, p := int64(i), r.IntN(3), r.IntN(6)
		s := step{name: reopens}
		switch k := r.IntN(100); {
		case i%50 == 49:
		case k < 14:
			s = put("put", plain, d, p, v, false)
		case k < 20:
			s = putMany(v)
		case k < 24:
			s = step{"delete", []effect{{key("plain", d, p), ""}}, func(ctx context.Context, w *world) error {
				return plain.For(w.store, acme).Delete(ctx, device(d), at(p))
			}}
		case k < 27:
			s = step{name: deletesAll, run: func(ctx context.Context, w *world) error {
				_, err := plain.For(w.store, acme).DeleteRange(ctx, device(d), tsdb.AllTime())
				return err
			}}
			for p := range 6 {
				s.effects = append(s.effects, effect{key("plain", d, p), ""})
			}
		case k < 35:
			s = put("put with a head", heads, d, p, v, false)
		case k < 38:
			s = step{"delete with a head", []effect{{key("heads", d, p), ""}}, func(ctx context.Context, w *world) error {
				return heads.For(w.store, acme).Delete(ctx, device(d), at(p))
			}}
		case k < 46:
			field := fmt.Sprint("f", r.IntN(4))
			s = step{"merge", []effect{{key("merged", d, p) + " " + field, fmt.Sprint(v)}}, func(ctx context.Context, w *world) error {
				return merged.For(w.store, acme).Put(ctx, device(d), at(p), codec.NewRecord(codec.Field{Name: field, Value: codec.Int(v)}))
			}}
		case k < 60:
			s = put("enqueue", queued, d, p, v, true)
		case k < 62:
			s = export(fmt.Sprint("export", i))
		case k < 69:
			s = put(enqueues, once, d, p, v, true)
			if r.IntN(2) == 0 {
				s = put("put a first point", once, d, p, v, false)
			}
		case k < 76:
			s = step{"count by stream", []effect{{fmt.Sprint("stream ", v), "1"}}, func(ctx context.Context, w *world) error {
				return rollup.NewAdder(byStream, sums.For(w.store, acme), w.w).Add(ctx, counted, start, 1)
			}}
		case k < 81:
			id := fmt.Sprint("m", r.IntN(10)) // some come twice
			s = step{"count by message", []effect{{"message " + id, "1"}}, func(ctx context.Context, w *world) error {
				_, err := rollup.NewAdder(byMessage, sums.For(w.store, acme), nil).AddMessage(ctx, id, counted, start, 1)
				return err
			}}
		case k < 84:
			s = step{"count once", []effect{{fmt.Sprint("once ", v), "1"}}, func(ctx context.Context, w *world) error {
				return rollup.NewAdder(byOnce, sums.For(w.store, acme), nil).Add(ctx, counted, start, 1)
			}}
		case k < 90:
			s = step{"flush", nil, func(ctx context.Context, w *world) error { return w.w.Flush(ctx) }}
		case k < 92:
			s = step{"scrub", nil, func(ctx context.Context, w *world) error { return w.w.ScrubJournal(ctx) }}
		case k < 94:
			s = step{"retry the dead letters", nil, func(ctx context.Context, w *world) error {
				ids, err := dead(ctx, w)
				for _, id := range ids {
					_, err := w.w.RetryDeadLetters(ctx, id)
					if err != nil {
						return err
					}
				}
				return err
			}}
		case k < 96:
			s = step{dropsLetter, nil, dropLetter}
		case k < 98:
			name := fmt.Sprint("name ", v)
			s = step{"change the profile", []effect{{"profile", name}}, func(ctx context.Context, w *world) error {
				_, err := tenants.Onboard(ctx, w.store, acme, tenants.Profile{Name: name}, tenants.OnboardOptions{Replace: true})
				return err
			}}
		default:
			erased := fmt.Sprint("e", r.IntN(2))
			s = step{"erase " + erased, []effect{{"erased " + erased, "1"}}, func(ctx context.Context, w *world) error {
				repo := plain.For(w.store, acme)
				if err := repo.Put(ctx, tsdb.NewEntity(erased), at(p), v); err != nil && !errors.Is(err, tsdb.ErrErased) {
					return err
				}
				return erase(ctx, w.store, erased)
			}}
		}
		list = append(list, s)
	}
	return list
}

func erase(ctx context.Context, store *tsdb.Store, name string) error {
	_, err := tenants.EraseEntity(ctx, store, acme, "plain", map[string]string{"device": name}, tenants.EraseOptions{Settle: 1})
	return err
}

func key(dataset string, d, p int) string { return fmt.Sprintf("%s %s %d", dataset, device(d), p) }

func put(name string, s *tsdb.Schema[int64], d, p int, v int64, journal bool) step {
	return step{name, []effect{{key(s.Name(), d, p), fmt.Sprint(v)}}, func(ctx context.Context, w *world) error {
		repo := s.For(w.store, acme)
		if journal {
			return repo.Via(w.w).Enqueue(ctx, device(d), at(p), v)
		}
		return repo.Put(ctx, device(d), at(p), v)
	}}
}

func putMany(v int64) step {
	s := step{name: "put many"}
	var points []tsdb.Point[int64]
	for d := range 3 {
		for p := range 2 {
			s.effects = append(s.effects, effect{key("plain", d, p), fmt.Sprint(v)})
			points = append(points, tsdb.Point[int64]{Entity: device(d), Time: at(p), Value: v})
		}
	}
	s.run = func(ctx context.Context, w *world) error {
		all, err := plain.For(w.store, acme).PutMany(ctx, points)
		if err == nil || len(all) == 0 {
			return err
		}
		each := make(outcomes, len(all))
		for i, o := range all {
			if o.State != tsdb.Stored {
				each[i] = &tsdb.WriteError{Outcome: o}
			}
		}
		return each
	}
	return s
}

// dead returns the dead letters of the journal.
func dead(ctx context.Context, w *world) (ids []uint64, err error) {
	for l, err := range w.w.DeadLetters(ctx) {
		if err != nil {
			return ids, err
		}
		ids = append(ids, l.ID)
	}
	return ids, nil
}

// dropLetter drops the first dead letter. Which one that is shows when the step runs.
func dropLetter(ctx context.Context, w *world) error {
	for l, err := range w.w.DeadLetters(ctx) {
		if err != nil {
			return err
		}
		w.note("drop %s", letterText(l))
		_, err = w.w.DropDeadLetters(ctx, l.ID)
		return err
	}
	return nil
}

// letterText is the key of a dead letter and its value.
func letterText(l tsdb.DeadLetter) string {
	v, err := codec.Int64().Decode(l.Payload)
	if err != nil || l.Dataset != "once" {
		return fmt.Sprintf("%s, which is no point that can be refused", l.Dataset)
	}
	return fmt.Sprintf("%s %s %d %d", l.Dataset, l.Entity, int(l.Time.Sub(start).Seconds()), v)
}

// opening opens and closes everything.
func opening(p crash.Process) error {
	w, err := open(context.Background(), p.Dir, patienceOf(p.Fault))
	if err != nil {
		return err
	}
	return w.close(context.Background())
}

// everything runs the steps of the seed.
func everything(p crash.Process) error {
	ctx := context.Background()
	w, err := open(ctx, p.Dir, patienceOf(p.Fault))
	if err != nil {
		return err
	}
	for i, s := range steps(*seed, *length) {
		p.Note("begin %d", i)
		if s.name == reopens {
			_ = w.close(ctx)
			if w, err = open(ctx, p.Dir, patienceOf(p.Fault)); err != nil {
				return err
			}
			continue
		}
		w.note = p.Note
		limited, cancel := context.WithTimeout(ctx, w.patience)
		err := s.run(limited, w)
		cancel()
		p.Note("end %d %s", i, outcomeText(s, err))
	}
	return w.close(ctx)
}

// outcomeText has a letter for each effect, or one for a step without effects: stored, rejected or unknown.
func outcomeText(s step, err error) string {
	if err == nil {
		err = make(outcomes, max(1, len(s.effects)))
	}
	each, several := errors.AsType[outcomes](err)
	var text strings.Builder
	for i := range max(1, len(s.effects)) {
		one := err
		if several {
			one = each[i]
		}
		switch {
		case one == nil:
			text.WriteByte('s')
		case errors.Is(one, tsdb.ErrRejected):
			text.WriteByte('r')
		default:
			text.WriteByte('u')
		}
	}
	return text.String()
}
