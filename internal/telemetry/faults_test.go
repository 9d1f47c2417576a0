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

// TestRepeatedFaultsAreSummedUp checks that an hour in which all calls fail makes few log lines, whose counts add up to
// all calls.
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
			op.End(errors.New("refused by the SDK")) // logged at level DEBUG only
			time.Sleep(200 * time.Millisecond)
		}
		p.Close()
		synctest.Wait() // waits for the line of a timer that has just fired
		puts, reads := 0, 0
		all := out.read(t)
		for _, l := range all {
			if l.Level != "WARN" || l.Msg != "operation failed" || l.Table != "t" || l.Error != "" {
				t.Fatalf("got log line %+v", l)
			}
			n := max(1, l.Repeated)
			if l.Operation == "Put" && l.ErrorType == "UNAVAILABLE" {
				puts += n
			} else if l.Operation == "Latest" && l.ErrorType == "DEADLINE_EXCEEDED" {
				reads += n
			}
		}
		if puts != calls || reads != calls/10 || len(all) > 2*(1+120+1) {
			t.Errorf("got %d and %d calls in %d lines", puts, reads, len(all))
		}
		first, second := all[0], all[1]
		if first.Repeated != 0 || first.Dataset != "readings" || second.Operation == first.Operation {
			t.Errorf("got first lines %+v and %+v", first, second)
		}
	})
}

// TestFaultsOfManyKinds checks that the remembered faults are bounded, however many kinds there are.
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
			t.Errorf("got %d lines, want at most 110", len(l))
		}
		time.Sleep(2 * time.Minute) // then all faults are forgotten
		before := len(out.read(t))
		_, op := p.Begin(t.Context(), telemetry.Put, telemetry.Subject{})
		op.End(errors.New("x"))
		if l := out.read(t); len(l) != before+1 {
			t.Errorf("got %d more lines, want 1", len(l)-before)
		}
		p.Close()
		p.Close()
		_, op = p.Begin(t.Context(), telemetry.Put, telemetry.Subject{})
		op.End(errors.New("after the end"))
	})
}

// TestOutageIsLoggedOnce checks that the log says once that the service is down, and once that it is back.
func TestOutageIsLoggedOnce(t *testing.T) {
	if os.Getenv("TIDEMARK_TEST_TCP") != "" {
		t.Skip("synctest bubbles have no network")
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
			t.Errorf("during the outage: got down %+v, want 1", p)
		}
		if p := w.points("tidemark.writer.oldest.age"); len(p) != 1 || p[0].sum < 590 || p[0].sum > 610 {
			t.Errorf("during the outage: got oldest age %+v, want about 600 s", p)
		}
		if p := w.points("tidemark.writer.buffer.points"); len(p) != 1 || p[0].sum != 100 {
			t.Errorf("during the outage: got buffered points %+v, want 100", p)
		}
		end()
		if err := writer.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // Flush returns when the points are stored, and the line is logged after that
		w.forget()
		if p := w.points("tidemark.writer.down"); len(p) != 1 || p[0].sum != 0 {
			t.Errorf("after the outage: got down %+v, want 0", p)
		}
		away, back, others := 0, 0, 0
		for _, l := range out.read(t) {
			switch l.Msg {
			case "the service takes no points; the writer keeps them and asks one request at a time":
				if away++; l.Level != "WARN" || l.ErrorType != "UNAVAILABLE" {
					t.Errorf("got log line %+v, want WARN and UNAVAILABLE", l)
				}
			case "the service takes points again":
				if back++; l.Level != "INFO" || l.After < 9*time.Minute {
					t.Errorf("got log line %+v, want INFO after at least 9 minutes", l)
				}
			default:
				others++
			}
		}
		if away != 1 || back != 1 || others > 50 {
			t.Errorf("got %d lines for the outage, %d for its end and %d others; want 1, 1 and at most 50", away, back, others)
		}
		if err := writer.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := w.store.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestPointsThatAreLostAreLogged checks that the log has the number of lost points and the type of their error.
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
		t.Fatal("got nil from a writer with refused points, want an error")
	}
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	lost := 0
	for _, l := range out.read(t) {
		if l.Msg == "point not stored" {
			if lost += max(1, l.Repeated); l.Level != "ERROR" || l.ErrorType != "FAILED_PRECONDITION" || l.Error != "" || l.Tenant != "" {
				t.Errorf("got log line %+v", l)
			}
		}
	}
	if lost != 50 {
		t.Errorf("got %d lost points in the log, want 50", lost)
	}
}
