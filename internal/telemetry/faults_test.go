package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// lines is a log that can be read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// line is one line of a log.
type line struct {
	Level, Msg, Table, Operation, Dataset, Tenant, Error string
	ErrorType                                            string `json:"error_type"`
	Repeated                                             int
	After                                                time.Duration
}

func (l *lines) read(t *testing.T) (all []line) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for d := json.NewDecoder(bytes.NewReader(l.b.Bytes())); d.More(); {
		var one line
		if err := d.Decode(&one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

func logger(level slog.Level) (*slog.Logger, *lines) {
	l := new(lines)
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: level})), l
}

// TestRepeatedFaultsAreSummedUp: an hour in which all calls fail makes few lines, and they add up to all of them.
func TestRepeatedFaultsAreSummedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, out := logger(slog.LevelInfo)
		p := telemetry.Open(telemetry.Config{Table: "t", Logger: log})
		const calls = 3600 * 5
		for i := range calls {
			_, op := p.Begin(t.Context(), telemetry.Put, telemetry.Subject{Dataset: "readings"})
			op.End(status.Error(grpccodes.Unavailable, "secret"))
			if i%10 == 0 {
				_, op := p.Begin(t.Context(), telemetry.Latest, telemetry.Subject{})
				op.End(status.Error(grpccodes.DeadlineExceeded, "secret"))
			}
			_, op = p.Begin(t.Context(), telemetry.Put, telemetry.Subject{})
			op.End(errors.New("refused by the SDK")) // for debugging only
			time.Sleep(200 * time.Millisecond)
		}
		p.Close()
		synctest.Wait() // for the line of a timer that went off just now
		puts, reads := 0, 0
		all := out.read(t)
		for _, l := range all {
			if l.Level != "WARN" || l.Msg != "operation failed" || l.Table != "t" || l.Error != "" {
				t.Fatalf("%+v", l)
			}
			n := max(1, l.Repeated)
			if l.Operation == "Put" && l.ErrorType == "UNAVAILABLE" {
				puts += n
			} else if l.Operation == "Latest" && l.ErrorType == "DEADLINE_EXCEEDED" {
				reads += n
			}
		}
		if puts != calls || reads != calls/10 || len(all) > 2*(1+120+1) {
			t.Errorf("%d and %d calls in %d lines", puts, reads, len(all))
		}
		first, second := all[0], all[1]
		if first.Repeated != 0 || first.Dataset != "readings" || second.Operation == first.Operation {
			t.Errorf("%+v, %+v", first, second)
		}
	})
}

// TestFaultsOfManyKinds: however many kinds there are, what is remembered of them is bounded.
func TestFaultsOfManyKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, out := logger(slog.LevelDebug)
		n := 0
		p := telemetry.Open(telemetry.Config{Table: "t", Logger: log, Kind: func(error) string { n++; return fmt.Sprint("kind", n) }})
		for range 10_000 {
			_, op := p.Begin(t.Context(), telemetry.Put, telemetry.Subject{})
			op.End(errors.New("x"))
		}
		if l := out.read(t); len(l) > 110 {
			t.Errorf("%d lines", len(l))
		}
		time.Sleep(2 * time.Minute) // after which all is forgotten
		before := len(out.read(t))
		_, op := p.Begin(t.Context(), telemetry.Put, telemetry.Subject{})
		op.End(errors.New("x"))
		if l := out.read(t); len(l) != before+1 {
			t.Errorf("%d lines more", len(l)-before)
		}
		p.Close()
		p.Close()
		_, op = p.Begin(t.Context(), telemetry.Put, telemetry.Subject{})
		op.End(errors.New("after the end"))
	})
}

// TestOutageIsLoggedOnce: that the service is away, and that it is back.
func TestOutageIsLoggedOnce(t *testing.T) {
	if os.Getenv("TIDEMARK_TEST_TCP") != "" {
		t.Skip("a bubble has no network")
	}
	synctest.Test(t, func(t *testing.T) {
		log, out := logger(slog.LevelInfo)
		w := newWorld(t, tsdb.Telemetry{Logger: log}, tsdbtest.Options{})
		writer, err := w.store.NewWriter(tsdb.WriterOptions{DeliveryTimeout: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		in := w.repo.Via(writer)
		end := w.conn.Outage()
		for i := range 100 {
			if err := in.Enqueue(t.Context(), roof, w.base.Add(time.Duration(i)*time.Second), 1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(6 * time.Second)
		}
		w.forget()
		if p := w.points("tidemark.writer.down"); len(p) != 1 || p[0].sum != 1 {
			t.Errorf("%+v", p)
		}
		if p := w.points("tidemark.writer.oldest.age"); len(p) != 1 || p[0].sum < 590 || p[0].sum > 610 {
			t.Errorf("the oldest point: %+v", p)
		}
		if p := w.points("tidemark.writer.buffer.points"); len(p) != 1 || p[0].sum != 100 {
			t.Errorf("%+v", p)
		}
		end()
		if err := writer.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.forget()
		if p := w.points("tidemark.writer.down"); len(p) != 1 || p[0].sum != 0 {
			t.Errorf("%+v", p)
		}
		away, back, others := 0, 0, 0
		for _, l := range out.read(t) {
			switch l.Msg {
			case "the service takes no points; the writer keeps them and asks one request at a time":
				if away++; l.Level != "WARN" || l.ErrorType != "UNAVAILABLE" {
					t.Errorf("%+v", l)
				}
			case "the service takes points again":
				if back++; l.Level != "INFO" || l.After < 9*time.Minute {
					t.Errorf("%+v", l)
				}
			default:
				others++
			}
		}
		if away != 1 || back != 1 || others > 50 {
			t.Errorf("%d times away, %d times back, %d other lines", away, back, others)
		}
		if err := writer.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := w.store.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestPointsThatAreLostAreLogged, by their number and kind.
func TestPointsThatAreLostAreLogged(t *testing.T) {
	log, out := logger(slog.LevelInfo)
	w := newWorld(t, tsdb.Telemetry{Logger: log}, tsdbtest.Options{})
	writer, err := w.store.NewWriter(tsdb.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.conn.Inject(tsdbtest.FailEntries(grpccodes.FailedPrecondition, func(string) bool { return true }))
	for i := range 50 {
		if err := w.repo.Via(writer).Enqueue(t.Context(), roof, w.base.Add(time.Duration(i)*time.Second), 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(t.Context()); err == nil {
		t.Fatal("all are stored")
	}
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	lost := 0
	for _, l := range out.read(t) {
		if l.Msg == "point not stored" {
			if lost += max(1, l.Repeated); l.Level != "ERROR" || l.ErrorType != "FAILED_PRECONDITION" || l.Error != "" || l.Tenant != "" {
				t.Errorf("%+v", l)
			}
		}
	}
	if lost != 50 {
		t.Errorf("%d points lost, by the log", lost)
	}
}
