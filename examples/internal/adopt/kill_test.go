package adopt_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tidemark-go/tidemark/examples/internal/adopt"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

var (
	rowsFlag    = flag.Int("adopt.rows", 2000, "points of each table in TestKilledCopies")
	killsFlag   = flag.Int("adopt.kills", 2, "how often TestKilledCopies kills each copy")
	layoutsFlag = flag.String("adopt.layout", "", "the only layout of TestKilledCopies; empty is the first with few rows, else all")
)

// The environment of the process that copies: the layout, and what to do.
const (
	childVariable = "TIDEMARK_ADOPT_CHILD"
	childFinish   = "TIDEMARK_ADOPT_FINISH" // end after a whole pass; else pass after pass
	childState    = "TIDEMARK_ADOPT_STATE"
	childHost     = "TIDEMARK_ADOPT_HOST"
)

// dial returns the official clients of an engine in another process.
func dial(host string) (*bigtable.Client, *bigtable.AdminClient, error) {
	conn, err := grpc.NewClient("passthrough:///"+host, append(tsdb.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return nil, nil, err
	}
	conf := tsdb.ClientConfig()
	conf.MetricsProvider = bigtable.NoopMetricsProvider{}
	client, err := bigtable.NewClientWithConfig(context.Background(), embedded.Project, embedded.Instance, conf, option.WithGRPCConn(conn))
	if err != nil {
		return nil, nil, err
	}
	admin, err := bigtable.NewAdminClient(context.Background(), embedded.Project, embedded.Instance, option.WithGRPCConn(conn))
	return client, admin, err
}

// child is the process that is killed. It prints a line for each state that it has saved.
func child() {
	if err := copyLayout(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func copyLayout() error {
	i, err := strconv.Atoi(os.Getenv(childVariable))
	if err != nil {
		return err
	}
	client, admin, err := dial(os.Getenv(childHost))
	if err != nil {
		return err
	}
	store, err := tsdb.New(client, "tidemark", tsdb.Options{Admin: admin})
	if err != nil {
		return err
	}
	m, err := adopt.Parse([]byte(layouts[i].mapping))
	if err != nil {
		return err
	}
	s, err := adopt.Open(client.OpenTable(layouts[i].name), m)
	if err != nil {
		return err
	}
	name := os.Getenv(childState)
	for pass := 0; ; pass++ {
		var state adopt.State
		text, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(text, &state)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if os.Getenv(childFinish) != "" && pass == 2 { // one that was begun, and one that began after the last write
			return nil
		}
		_, err = s.Copy(context.Background(), store, adopt.CopyOptions{State: state, Rate: 10_000_000, Save: func(state adopt.State) error {
			text, err := json.Marshal(state)
			if err == nil {
				err = os.WriteFile(name+".new", text, 0o600)
			}
			if err == nil {
				err = os.Rename(name+".new", name)
			}
			var mem runtime.MemStats
			runtime.ReadMemStats(&mem)
			fmt.Println(state.Pass, state.Points, mem.Sys>>20)
			return err
		}})
		if err != nil {
			return err
		}
	}
}

// TestKilledCopies kills copies while points are written to the foreign tables, continues them, and compares each byte
// at the end.
func TestKilledCopies(t *testing.T) {
	for i, l := range layouts {
		if *layoutsFlag != "" && *layoutsFlag != l.name || *layoutsFlag == "" && *rowsFlag <= 2000 && i > 0 {
			continue
		}
		t.Run(l.name, func(t *testing.T) { killCopies(t, i, l) })
	}
}

func killCopies(t *testing.T, index int, l layout) {
	devices := min(1000, *rowsFlag/20)
	count := *rowsFlag / devices
	began, beganWritten := epoch, written
	t.Cleanup(func() { epoch, written = began, beganWritten })
	epoch = time.Now().UTC().Truncate(time.Minute).Add(-time.Duration(count) * time.Minute) // so that the last points are new
	written = micros(time.Now())

	dir := t.TempDir()
	server, err := embedded.NewServer(embedded.Options{Dir: filepath.Join(dir, "store")})
	if err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, lis) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	client, admin, err := dial(lis.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, client: client, admin: admin}
	w.store, err = tsdb.New(client, "tidemark", tsdb.Options{Admin: admin, OnClose: client.Close})
	w.ok(err)
	defer w.store.Close()
	table := w.create(l.name)
	l.put(t, table, devices, 0, count, 0)

	// One goroutine writes to the foreign table all the time: new points, and the last ones again.
	again := min(5, count)
	writing, extra := make(chan struct{}), make(chan int, 1)
	go func() {
		n := 0
		defer func() { extra <- n }() // also if a write fails, which ends this goroutine
		for {
			select {
			case <-writing:
				return
			default:
			}
			if n == count { // enough, however slow the copies are
				<-writing
				continue
			}
			written = micros(time.Now())
			l.put(t, table, devices, count+n, count+n+1, 0)
			if n < again {
				l.put(t, table, devices, count-1-n, count-n, 1)
			}
			n++
			time.Sleep(time.Duration(*rowsFlag) * time.Second / 4_000_000) // a quarter of a second for a million rows
		}
	}()
	c := killing{t: t, env: []string{childVariable + "=" + strconv.Itoa(index), childHost + "=" + lis.Addr().String(), childState + "=" + filepath.Join(dir, "state")}}
	start := time.Now()
	for range *killsFlag {
		c.run(time.Duration(rand.Int64N(int64(*rowsFlag)*3))*time.Microsecond, false)
	}
	close(writing)
	more := <-extra
	if t.Failed() {
		t.FailNow()
	}
	c.run(0, true)
	took := time.Since(start)

	s := l.source(t, table)
	start = time.Now()
	v, err := s.Verify(ctx, w.store, adopt.VerifyOptions{})
	w.ok(err)
	if want := int64(devices * (count + more)); !v.Same() || v.Source != want {
		t.Fatalf("after %d kills Verify = %+v, want %d equal points", *killsFlag, v, want)
	}
	verified := time.Since(start)
	w.compare(l, devices, count+more, func(_, i int) int {
		if i < count && i >= count-min(again, more) {
			return 1
		}
		return 0
	})
	t.Logf("%s: %d points of %d devices, %d of them written meanwhile; %d kills, %d passes, %s in all; %.0f points a second at most; the copying process has up to %d MiB; verified in %s (%.0f points a second)",
		l.name, v.Source, devices, devices*more, *killsFlag, c.pass, took.Round(time.Millisecond), c.rate, c.memory, verified.Round(time.Millisecond), float64(v.Source)/verified.Seconds())
}

// killing runs processes that copy.
type killing struct {
	t      *testing.T
	env    []string
	pass   int
	memory int     // MiB
	rate   float64 // of the first pass, from the first saved state of a process to its last; the fastest process
}

// run starts a process and kills it some time after it has saved a state, or waits for its end.
func (c *killing) run(after time.Duration, finish bool) {
	c.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), c.env...)
	if finish {
		cmd.Env = append(cmd.Env, childFinish+"=1")
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	most := time.Minute + time.Duration(*rowsFlag)*time.Millisecond
	hangs := time.AfterFunc(most, func() {
		c.t.Errorf("the copying process does not end within %v", most)
		_ = cmd.Process.Kill()
	})
	defer hangs.Stop()
	var timer *time.Timer
	firstPoints, firstAt := 0, time.Time{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var pass, points, memory int
		if _, err := fmt.Sscan(lines.Text(), &pass, &points, &memory); err != nil {
			continue // half a line
		}
		if !finish && timer == nil {
			timer = time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
			defer timer.Stop()
		}
		now := time.Now()
		if firstAt.IsZero() {
			firstPoints, firstAt = points, now
		} else if since := now.Sub(firstAt).Seconds(); pass == 1 && since > 0.5 {
			c.rate = max(c.rate, float64(points-firstPoints)/since)
		}
		c.pass, c.memory = max(c.pass, pass), max(c.memory, memory)
	}
	if err := cmd.Wait(); finish != (err == nil) || !finish && cmd.ProcessState.Exited() {
		c.t.Fatalf("the copying process ended with %v", err)
	}
}
