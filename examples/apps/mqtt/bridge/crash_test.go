package bridge

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/paho"

	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

var crashRounds = flag.Int("crash.rounds", 4, "how often TestCrashes kills the service or the broker; 60 is the long run")

// The variables of the service's process.
const (
	crashFolder  = "BRIDGE_TEST_FOLDER"
	crashBroker  = "BRIDGE_TEST_BROKER"
	crashJournal = "BRIDGE_TEST_JOURNAL"
)

const views = "v1/+tenant/+device/views dataset=views key=device time=at,s count=1h id=message_id"

// allStored is what the service prints when the last message is stored, and none waits.
const allStored = "all stored"

// service is a process that TestCrashes kills: a bridge with a store in a folder.
func service(folder, broker string, journal bool) {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "service:", err)
			os.Exit(1)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	store, err := embedded.Open(ctx, filepath.Join(folder, "store"))
	fail(err)
	routes, err := inbound.ParseRoutes(strings.NewReader(telemetry + "\n" + views))
	fail(err)
	config := Config{Broker: broker, ReceiveMaximum: 64, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	if journal {
		config.Journal.Dir = filepath.Join(folder, "journal")
	}
	b, err := New(ctx, store, routes, config)
	fail(err)
	go func() {
		<-b.Subscribed()
		fmt.Println("subscribed")
		last := func() bool {
			d, err := b.datasets.Find(ctx, acme, "telemetry")
			fail(err)
			_, err = d.Schema().For(store, acme).Latest(ctx, tsdb.NewEntity("last", "last"))
			return err == nil
		}
		for !last() || b.Stats().Waiting > 0 {
			time.Sleep(5 * time.Millisecond)
		}
		fmt.Println(allStored)
	}()
	err = b.Run(ctx)
	fmt.Printf("%+v\n", b.Stats())
	fail(err)
	fail(store.Close())
}

// process is a running service.
type process struct {
	cmd        *exec.Cmd
	subscribed chan struct{}
	stored     chan struct{} // closed when it has printed allStored
	output     strings.Builder
	ended      sync.WaitGroup
}

func startService(t *testing.T, folder, broker string, journal bool) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0]), subscribed: make(chan struct{}), stored: make(chan struct{})}
	endWithTest(p.cmd)
	p.cmd.Env = append(os.Environ(), crashFolder+"="+folder, crashBroker+"="+broker, crashJournal+"="+map[bool]string{true: "yes"}[journal])
	p.cmd.Stderr = &p.output
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.ended.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			switch lines.Text() {
			case "subscribed":
				close(p.subscribed)
			case allStored:
				close(p.stored)
			}
		}
	})
	t.Cleanup(p.kill)
	return p
}

// kill ends the service as kill -9 does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	p.ended.Wait()
	_ = p.cmd.Wait()
}

func (p *process) wait(t *testing.T, c chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(2 * time.Minute):
		p.kill()
		t.Fatalf("the service is not %s within two minutes:\n%.4000s", what, p.output.String())
	}
}

// crashTest publishes messages and knows which of them must be stored.
type crashTest struct {
	t       *testing.T
	broker  *mosquitto
	devices []*autopaho.ConnectionManager
	next    int
	unsaved []int // accepted by the broker since it last saved its state: a broker that is killed may lose them
}

const crashStart = 1_767_225_600_000 // 2026-01-01, in ms

// message returns the topic and the payload of message n. Every third one is a view, which is counted.
func crashMessage(n int) (topic, payload string) {
	if n%3 == 0 {
		return fmt.Sprintf("v1/acme/d%d/views", n%5), fmt.Sprintf(`{"at":%d,"message_id":"m%d"}`, crashStart/1000+n%3600, n)
	}
	return fmt.Sprintf("v1/acme/s/d%d/telemetry", n%5), fmt.Sprintf(`{"ts":%d,"n":%d}`, crashStart+n, n)
}

// publish publishes messages until the broker has accepted each, as a device does that keeps them until then.
func (c *crashTest) publish(numbers []int) {
	var all sync.WaitGroup
	for i, device := range c.devices {
		all.Go(func() {
			for j := i; j < len(numbers); j += len(c.devices) {
				topic, payload := crashMessage(numbers[j])
				c.deliver(device, topic, payload)
			}
		})
	}
	all.Wait()
	c.unsaved = append(c.unsaved, numbers...)
}

func (c *crashTest) deliver(device *autopaho.ConnectionManager, topic, payload string) {
	for begin := time.Now(); time.Since(begin) < time.Minute; {
		ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Second)
		_ = device.AwaitConnection(ctx)
		_, err := device.Publish(ctx, &paho.Publish{QoS: 1, Topic: topic, Payload: []byte(payload)})
		cancel()
		if err == nil {
			return
		}
	}
	c.t.Errorf("the broker does not accept %s", topic)
}

// new returns the numbers of n more messages.
func (c *crashTest) new(n int) []int {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = c.next
		c.next++
	}
	return numbers
}

// save makes the broker write its state to disk: sessions, and messages that it has accepted and not delivered.
func (c *crashTest) save() {
	file := filepath.Join(c.broker.dir, "mosquitto.db")
	before, _ := os.Stat(file)
	saved := c.unsaved
	if err := c.broker.cmd.Process.Signal(savesState); err != nil {
		c.t.Fatal(err)
	}
	eventually(c.t, func() bool {
		after, err := os.Stat(file)
		return err == nil && (before == nil || !os.SameFile(before, after) || after.ModTime() != before.ModTime())
	}, func() string { return "mosquitto has not saved its state" })
	c.unsaved = c.unsaved[len(saved):]
}

// TestCrashes kills the service and the broker while devices publish. Afterwards each message that the broker has
// accepted is stored, and each view is counted once.
//
// A killed mosquitto forgets what it has accepted since it last saved its state, and knows as unacknowledged what was
// acknowledged since. The test publishes the former again, as a device cannot know to do. So the bridge gets many
// messages twice.
func TestCrashes(t *testing.T) {
	for _, journal := range []bool{false, true} {
		t.Run(fmt.Sprint("journal=", journal), func(t *testing.T) { testCrashes(t, journal, (*crashRounds+1)/2) })
	}
}

func testCrashes(t *testing.T, journal bool, rounds int) {
	c := &crashTest{t: t, broker: startBroker(t)}
	folder := t.TempDir()
	for i := range 3 {
		c.devices = append(c.devices, c.broker.client(fmt.Sprint("device", i), nil))
	}
	s := startService(t, folder, c.broker.url(), journal)
	s.wait(t, s.subscribed, "subscribed")
	const perRound = 120
	for round := range rounds {
		c.publish(c.new(perRound))
		c.save()
		var publishing sync.WaitGroup
		numbers := c.new(perRound)
		publishing.Go(func() { c.publish(numbers) })
		time.Sleep(rand.N(20 * time.Millisecond)) // the moment of the crash, which should differ
		if round%3 != 0 {
			c.broker.kill()
		}
		if round%3 != 1 {
			s.kill()
		}
		if round%3 != 0 {
			c.broker.start()
		}
		if round%3 != 1 {
			s = startService(t, folder, c.broker.url(), journal)
			s.wait(t, s.subscribed, "subscribed")
		}
		publishing.Wait()
		if round%3 != 0 {
			again := c.unsaved
			c.unsaved = nil
			c.publish(again)
		}
	}
	c.deliver(c.devices[0], "v1/acme/last/last/telemetry", fmt.Sprintf(`{"ts":%d,"n":0}`, crashStart))
	s.wait(t, s.stored, allStored)
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.ended.Wait()
	if err := s.cmd.Wait(); err != nil {
		t.Fatalf("after Ctrl-C: %v\n%.4000s", err, s.output.String())
	}
	c.check(folder)
}

// check reads the store.
func (c *crashTest) check(folder string) {
	t := c.t
	store, err := embedded.Open(t.Context(), filepath.Join(folder, "store"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	missing, stored := 0, map[string]bool{}
	wanted := make([]int64, 5)
	for d := range 5 {
		for _, p := range points(t, store, acme, "telemetry", "s", fmt.Sprint("d", d)) {
			stored[p] = true
		}
	}
	for n := range c.next {
		if n%3 == 0 {
			wanted[n%5]++
		} else if p := fmt.Sprintf("%d {n=%di}", crashStart+n, n); !stored[p] {
			missing++
			t.Logf("message %d is lost", n)
		}
	}
	if missing > 0 {
		t.Errorf("%d messages are lost", missing)
	}
	for d, want := range wanted {
		if got := total(t, store, acme, "views", fmt.Sprint("d", d)).Points; got != want {
			t.Errorf("d%d has %d views, want %d", d, got, want)
		}
	}
	t.Logf("%d messages, of which %d are views", c.next, (c.next+2)/3)
}
