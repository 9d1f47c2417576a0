package configs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/codec/zstd"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// setup is one way to configure everything.
type setup struct {
	format    format
	keys      keys
	opts      tsdb.SchemaOptions
	store     tsdb.StoreOptions
	writer    tsdb.WriterOptions
	journal   bool
	tcp, weak bool
	small     bool // the engine's memtables are small, so that tables are flushed and compacted
	parallel  tsdb.Concurrency
	rollup    string
}

func (s setup) String() string {
	text := []string{s.format.name, s.keys.name, s.opts.Precision.String()}
	for _, part := range []struct {
		is   bool
		name string
	}{
		{s.opts.Salts > 0, fmt.Sprint("salts ", s.opts.Salts)},
		{s.opts.Head.Points > 0, fmt.Sprint("heads of ", s.opts.Head.Points)},
		{s.opts.FirstWins, "first wins"},
		{s.opts.Merge, "merges"},
		{len(s.opts.Classes) > 0, "two classes"},
		{s.opts.Retention.Name != "", "expires"},
		{s.rollup != "", "rollup of " + s.rollup},
		{s.store.Cache.Entries > 0, fmt.Sprint("cache of ", s.store.Cache.Entries)},
		{s.store.Views, "views"},
		{s.store.CursorKeys != nil, "sealed cursors"},
		{s.writer.BatchPoints > 0, fmt.Sprint("batches of ", s.writer.BatchPoints)},
		{s.journal, "journal"},
		{s.parallel > 0, fmt.Sprint("concurrency ", s.parallel)},
		{s.small, "small memtables"},
		{s.tcp, "TCP"},
		{s.weak, "weak scans"},
	} {
		if part.is {
			text = append(text, part.name)
		}
	}
	return strings.Join(text, ", ")
}

// format is a codec of numbers.
type format struct {
	name  string
	codec codec.Codec[int64]
	field string // that has the number
	plain bool   // packages that know only the catalogue can read it
}

// reading is a value of JSON. Its text makes payloads of several sizes.
type reading struct {
	V    int64  `json:"v"`
	Text string `json:"text,omitempty"`
}

func formats() []format {
	object := codec.Convert(codec.JSON[reading](), func(r reading) (int64, error) { return r.V, nil },
		func(v int64) (reading, error) { return reading{v, strings.Repeat("text ", int(v)%200)}, nil })
	records := codec.Convert(codec.Records(), func(r codec.Record) (int64, error) {
		v, _ := r.Int("v")
		return v, nil
	}, func(v int64) (codec.Record, error) {
		return codec.NewRecord(codec.Field{Name: "v", Value: codec.Int(v)}), nil
	})
	float := codec.Convert(codec.Float64(), func(f float64) (int64, error) { return int64(f), nil }, func(v int64) (float64, error) { return float64(v), nil })
	text := codec.Convert(codec.String(), func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) },
		func(v int64) (string, error) { return strconv.FormatInt(v, 10), nil })
	return []format{
		{"int64", codec.Int64(), "", true},
		{"float64", float, "", true},
		{"text", text, "", true},
		{"JSON", object, "v", true},
		{"records", records, "v", true},
		{"JSON compressed", zstd.Wrap(object, zstd.Options{}), "v", true},
		{"records after JSON", codec.Fallback(records, object), "v", true},
		{"a tag of its own", codec.Tagged("own", codec.Int64()), "", false},
	}
}

// keys are key fields. Entities of all of them are in the same order.
type keys struct {
	name   string
	fields tsdb.KeyFields
	entity func(i int) tsdb.Entity
	site   func(i int) tsdb.Prefix // a prefix that has the entity
	shared bool                    // half of the entities share a prefix
}

func allKeys() []keys {
	return []keys{
		{
			"device", tsdb.Key("device"), func(i int) tsdb.Entity { return tsdb.NewEntity(fmt.Sprint("d", i)) },
			func(int) tsdb.Prefix { return tsdb.AllEntities() }, false,
		},
		{
			"site and device", tsdb.Key("site", "device"), func(i int) tsdb.Entity { return tsdb.NewEntity(siteName(i), fmt.Sprint("d#", i)) },
			func(i int) tsdb.Prefix { return tsdb.NewPrefix(siteName(i)) }, true,
		},
		{
			"site, line and number", tsdb.Key("site", "line").Uint("number", 4),
			func(i int) tsdb.Entity { return tsdb.NewEntity(siteName(i), "line", fmt.Sprintf("%04d", i)) },
			func(i int) tsdb.Prefix { return tsdb.NewPrefix(siteName(i), "line") }, true,
		},
	}
}

func siteName(i int) string { return []string{"a", "a/b"}[i/(numEntities/2)] }

// draw returns a random set-up. The first is the zero value of everything.
func draw(n int, r *rand.Rand) setup {
	s := setup{format: formats()[0], keys: allKeys()[0]}
	if n == 0 {
		return s
	}
	chance := func(percent int) bool { return r.IntN(100) < percent }
	s.format, s.keys = pick(r, formats()), pick(r, allKeys())
	s.opts.Precision = pick(r, []tsdb.Precision{tsdb.Nanoseconds, tsdb.Microseconds, tsdb.Milliseconds})
	s.opts.Salts = pick(r, []int{0, 0, 2, 7})
	if chance(50) {
		s.opts.Precision, s.opts.Head.Points = tsdb.Milliseconds, pick(r, []int{1, 2, 5})
	}
	switch {
	case chance(20):
		s.opts.FirstWins = true
	case s.format.name == "records" && chance(60):
		s.opts.Merge = true
	}
	if chance(30) {
		s.opts.Retention = gc.Class{Name: "year", Policy: gc.MaxAge(365 * 24 * time.Hour)}
	}
	if chance(30) {
		s.opts.Classes = []gc.Class{{Name: "decade", Policy: gc.MaxAge(3650 * 24 * time.Hour)}}
	}
	s.rollup = pick(r, []string{"", "hours", "hours", "days from hours"})
	s.store.Cache.Entries = pick(r, []int{0, 1, 1000})
	s.store.Views = chance(25)
	if chance(50) {
		s.store.CursorKeys = [][]byte{[]byte("a secret of thirty-two bytes: xy")}
	}
	s.writer.BatchPoints = pick(r, []int{0, 1, 2, 5})
	s.writer.Linger = pick(r, []time.Duration{0, -1})
	s.journal, s.tcp, s.weak, s.small = chance(40), chance(25), chance(50), chance(30)
	s.parallel = pick(r, []tsdb.Concurrency{0, 1, 3})
	return s
}

func pick[V any](r *rand.Rand, from []V) V { return from[r.IntN(len(from))] }

// world is a set-up that runs.
type world struct {
	setup
	t      *testing.T
	clock  *testkit.Clock
	schema *tsdb.Schema[int64]
	lasts  []*rollup.Rollup[int64]
	by     *window.Aggregator[int64] // of points
	rolled *window.Aggregator[int64] // of a rollup where one fits
	disk   vfs.FS
	dir    string // of the journal

	store   *tsdb.Store
	w       *tsdb.Writer
	close   []func() error // what is open
	answers int
}

func newWorld(t *testing.T, s setup) *world {
	w := &world{setup: s, t: t, clock: testkit.NewClock(start.AddDate(0, 0, 9)), disk: vfs.NewMem(), dir: t.TempDir()}
	number := []rollup.Measure[int64]{{Name: "v", Int: whole, Max: 1e9, Aggregates: window.Basic | window.Ends}}
	if s.rollup != "" {
		hours := rollup.MustDefine("hours", window.Every(time.Hour), number, rollup.Options{})
		w.lasts = append(w.lasts, hours)
		if s.rollup != "hours" {
			w.lasts = append(w.lasts, rollup.MustDefine("days", window.Days(1), number, rollup.Options{From: "hours"}))
		}
		for _, r := range w.lasts {
			w.opts.Rollups = append(w.opts.Rollups, r)
		}
	}
	var err error
	w.schema, err = tsdb.Define("numbers", s.keys.fields, s.format.codec, w.opts)
	w.must(err)
	measures := []window.Measure[int64]{{Name: "v", Int: whole, Aggregates: window.Basic | window.Ends}}
	w.by, err = window.New(window.Every(time.Hour), measures, window.Options{FromPoints: true})
	w.must(err)
	w.rolled, err = window.New(window.Every(time.Hour), measures, window.Options{})
	w.must(err)
	w.open()
	return w
}

func whole(v int64) (int64, bool) { return v, true }

// open opens the engine, the store and the writer.
func (w *world) open() {
	ctx := w.t.Context()
	opts := engine.Options{FS: w.disk, Weak: w.weak, GCInterval: -1}
	if w.small {
		opts.MemTableBytes = 64 << 10
	}
	server, err := local.Open(opts)
	w.must(err)
	conn, err := w.dial(server)
	w.must(err)
	client, admin, err := local.Clients(ctx, conn) // closing the client closes both
	w.must(err)
	w.setup.store.Clock = w.clock.Now
	w.store, err = tsdb.New(client, "tidemark", tsdb.Options{Admin: admin, StoreOptions: w.setup.store})
	w.must(err)
	w.must(w.store.Ensure(ctx, w.schema))
	for _, id := range ids {
		if w.setup.store.Views {
			w.must(w.store.EnsureView(ctx, id, w.schema))
		}
	}
	writer := w.writer
	if w.journal {
		writer.Journal.Dir = w.dir
	}
	w.w, err = w.store.NewWriter(writer)
	w.must(err)
	w.close = append(w.close, server.Close, client.Close, w.store.Close, func() error { return w.w.Close(ctx) })
}

func (w *world) dial(server *local.Server) (*grpc.ClientConn, error) {
	if !w.tcp {
		return server.Dial(tsdb.DialOptions()...)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	srv, ended := grpc.NewServer(), make(chan error, 1)
	server.Register(srv)
	go func() { ended <- srv.Serve(lis) }()
	w.close = append(w.close, func() error {
		srv.Stop()
		return <-ended
	})
	return grpc.NewClient(lis.Addr().String(), append(tsdb.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
}

// shut closes everything, what was opened last first.
func (w *world) shut() {
	var err error
	for i := len(w.close) - 1; i >= 0; i-- {
		err = errors.Join(err, w.close[i]())
	}
	w.close = nil
	w.must(err)
}

func (w *world) repo(tenant int) *tsdb.Repository[int64] { return w.schema.For(w.store, ids[tenant]) }

func (w *world) must(err error) {
	if err != nil {
		w.t.Helper()
		w.t.Fatal(err)
	}
}

// work lets a worker of the rollups make one pass, after a time in which nothing was written.
func (w *world) work(ctx context.Context) error {
	w.clock.Add(10 * time.Minute)
	worker, err := rollup.NewWorker(w.store, rollup.WorkerOptions{}, w.schema)
	if err != nil {
		return err
	}
	pass, err := worker.Pass(ctx)
	if err == nil && pass.Failed > 0 {
		err = fmt.Errorf("the pass %+v has failures", pass)
	}
	return err
}
