package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

const (
	topic        = "projects/p/topics/telemetry"
	poison       = "projects/p/topics/poison"
	subscription = "projects/p/subscriptions/telemetry"

	pointsRoute = "tenant=property:owner dataset=telemetry key=site,device time=ts,s"
	countsRoute = "tenant=acme dataset=views key=device time=at,s count=1h id=property:" + idProperty + " sum=bytes"
)

var (
	acme  = tenant.MustParse("acme")
	start = time.Unix(1767225600, 0).UTC()
)

// service is Pub/Sub in this process, with a topic, its subscription, and a topic for dead letters with one.
type service struct {
	*pstest.Server
	conn  *grpc.ClientConn
	ahead time.Duration // of its clock
}

func newService(t testing.TB, change func(*pb.Subscription)) *service {
	t.Helper()
	s := &service{Server: pstest.NewServer()}
	t.Cleanup(func() { s.Close() })
	for _, name := range []string{topic, poison} {
		if _, err := s.GServer.CreateTopic(t.Context(), &pb.Topic{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	sub := &pb.Subscription{Name: subscription, Topic: topic, AckDeadlineSeconds: 10}
	if change != nil {
		change(sub)
	}
	for _, sub := range []*pb.Subscription{sub, {Name: "projects/p/subscriptions/poison", Topic: poison, AckDeadlineSeconds: 10}} {
		if _, err := s.GServer.CreateSubscription(t.Context(), sub); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if s.conn, err = grpc.NewClient(s.Addr, grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.conn.Close() })
	return s
}

// letters returns the messages of the topic of dead letters. There must be one.
func (s *service) letters(t *testing.T) []*pb.PubsubMessage {
	t.Helper()
	got, err := s.GServer.Pull(t.Context(), &pb.PullRequest{Subscription: "projects/p/subscriptions/poison", MaxMessages: 100})
	if err != nil {
		t.Fatal(err)
	}
	var out []*pb.PubsubMessage
	for _, m := range got.GetReceivedMessages() {
		out = append(out, m.GetMessage())
	}
	return out
}

// acks returns how many of the messages are acknowledged.
func (s *service) acks(ids []string) (n int) {
	for _, id := range ids {
		if s.Message(id).Acks > 0 {
			n++
		}
	}
	return n
}

// expireLeases lets the server's clock pass the leases of all messages that it has sent.
func (s *service) expireLeases() {
	s.ahead += 65 * time.Second // one is a minute
	ahead := s.ahead
	s.SetTimeNowFunc(func() time.Time { return time.Now().Add(ahead) })
}

func (s *service) publish(data string, attributes ...string) string {
	all := map[string]string{}
	for i := 0; i < len(attributes); i += 2 {
		all[attributes[i]] = attributes[i+1]
	}
	return s.Publish(topic, []byte(data), all)
}

// rig is a subscriber on its own store.
type rig struct {
	*subscriber
	conn *tsdbtest.Conn
	stop func() // as Ctrl-C does; waits until the subscriber has ended
}

// begin runs a subscriber until the test ends.
func begin(t testing.TB, s *service, args ...string) *rig {
	t.Helper()
	o, err := parse(append([]string{"-subscription", subscription, "-dead-letters", poison}, args...), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{RequireTenant: true, Timeouts: tsdb.Timeouts{Write: time.Second}}})
	client, err := pubsub.NewClient(t.Context(), "p", option.WithGRPCConn(s.conn), option.WithTelemetryDisabled())
	if err != nil {
		t.Fatal(err)
	}
	sub, err := newSubscriber(t.Context(), store, client, o, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- sub.run(ctx) }()
	r := &rig{sub, conn, sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})}
	t.Cleanup(r.stop)
	return r
}

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for begin := time.Now(); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("after a minute: %s", what)
		}
	}
}

func (r *rig) repository(t testing.TB, dataset string) *tsdb.Repository[codec.Record] {
	t.Helper()
	d, err := r.datasets.Find(t.Context(), acme, dataset)
	if err != nil {
		t.Fatal(err)
	}
	return d.Schema().For(r.sink.Store, acme)
}

func (r *rig) latest(t testing.TB, key ...string) string {
	t.Helper()
	p, err := r.repository(t, "telemetry").Latest(tenant.NewContext(t.Context(), acme), tsdb.NewEntity(key...))
	if err != nil {
		return err.Error()
	}
	return p.Value.String()
}

// TestMessages: each message is stored and acknowledged, or is a dead letter with the reason. With exactly-once
// delivery and with a journal it is the same.
func TestMessages(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*pb.Subscription)
		args   []string
	}{
		"plain":        {},
		"exactly once": {change: func(s *pb.Subscription) { s.EnableExactlyOnceDelivery = true }},
		"journal":      {args: []string{"-journal", t.TempDir()}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, tt.change)
			r := begin(t, s, append(tt.args, "-route", pointsRoute, "-attributes", "site", "-max-payload", "200")...)
			var ids []string
			for i := range 50 {
				ids = append(ids, s.publish(fmt.Sprintf(`{"device":"d%d","ts":1767225600,"temp":21.5}`, i), "owner", "acme", "site", "berlin", "trace", "x"))
			}
			good := len(ids)
			reasons := map[string]string{}
			for _, bad := range []struct{ data, reason string }{
				{"nonsense", inbound.ReasonSyntax},
				{`{"ts":1767225600,"temp":1}`, "it lacks the key tag device"},
				{`{"device":"d","ts":253402300800,"temp":1}`, inbound.ReasonTime},
				{`{"device":"d","ts":1767225600000,"temp":1}`, inbound.ReasonTime}, // in ms
				{`{"device":"d","ts":1767225600,"temp":"` + strings.Repeat("x", 200) + `"}`, "its payload is too large"},
			} {
				id := s.publish(bad.data, "owner", "acme", "site", "berlin", attributeReason, "an earlier one")
				ids, reasons[id] = append(ids, id), bad.reason
			}
			none := s.publish(`{"device":"d","ts":1767225600,"temp":1}`, "site", "berlin")
			ids, reasons[none] = append(ids, none), inbound.ReasonTenant
			eventually(t, "not all messages are acknowledged", func() bool { return s.acks(ids) == len(ids) })
			if err := r.sink.Writer.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			for i := range good {
				if got := r.latest(t, "berlin", fmt.Sprint("d", i)); got != "{temp=21.5}" {
					t.Errorf("device %d: %s", i, got)
				}
			}
			letters := s.letters(t)
			for _, l := range letters {
				a := l.GetAttributes()
				if want := reasons[a[attributeID]]; a[attributeReason] != want || want == "" || a["site"] != "berlin" || a[attributeError] == "" || a[attributeFrom] != subscription || string(l.GetData()) != string(s.Message(a[attributeID]).Data) {
					t.Errorf("a dead letter %q with %v, want the reason %q", l.GetData(), a, want)
				}
			}
			if len(letters) != len(reasons) {
				t.Errorf("%d dead letters, want %d", len(letters), len(reasons))
			}
			r.stop()
			var text strings.Builder
			r.print(&text)
			if want := "6 published as dead letters"; !strings.Contains(text.String(), want) || r.returned.Load() != 0 {
				t.Errorf("the program prints %s, want %q", text.String(), want)
			}
		})
	}
}

// TestStoreThatIsDown: while the store is down nothing is acknowledged, Pub/Sub sends no more than the bound, and
// afterwards everything is stored.
func TestStoreThatIsDown(t *testing.T) {
	s := newService(t, nil)
	r := begin(t, s, "-route", pointsRoute, "-attributes", "site", "-max-messages", "20", "-timeout", "1s")
	end := r.conn.Outage()
	var ids []string
	for i := range 100 {
		ids = append(ids, s.publish(fmt.Sprintf(`{"device":"d%d","ts":1767225600,"temp":%d}`, i, i), "owner", "acme", "site", "berlin"))
	}
	eventually(t, "the subscriber did not fill", func() bool { return r.received.Load() >= 20 })
	eventually(t, "no warning", func() bool { return r.warned.Load() > 0 })
	if got, acked := r.received.Load(), s.acks(ids); got != 20 || acked != 0 {
		t.Errorf("in the outage: %d messages are under way and %d acknowledged, want 20 and 0", got, acked)
	}
	end()
	eventually(t, "not all messages are acknowledged", func() bool { return s.acks(ids) == len(ids) })
	for i := range ids {
		if got, want := r.latest(t, "berlin", fmt.Sprint("d", i)), fmt.Sprintf("{temp=%di}", i); got != want {
			t.Errorf("device %d: %s, want %s", i, got, want)
		}
	}
}

// TestStopInAnOutage: Ctrl-C gives the messages back that could not be stored, so that another process gets them at
// once.
func TestStopInAnOutage(t *testing.T) {
	s := newService(t, nil)
	r := begin(t, s, "-route", pointsRoute, "-attributes", "site", "-timeout", "1s", "-drain", "2s")
	end := r.conn.Outage()
	id := s.publish(`{"device":"d","ts":1767225600,"temp":1}`, "owner", "acme", "site", "berlin")
	eventually(t, "no warning", func() bool { return r.warned.Load() > 0 })
	r.stop()
	if got := s.acks([]string{id}); got != 0 || r.returned.Load() != 1 {
		t.Errorf("%d acknowledged and %d given back, want 0 and 1", got, r.returned.Load())
	}
	end()
	next := begin(t, s, "-route", pointsRoute, "-attributes", "site")
	s.acknowledged(t, "not all messages that were given back", func() bool { return s.acks([]string{id}) == 1 })
	if got := next.latest(t, "berlin", "d"); got != "{temp=1i}" {
		t.Errorf("stored: %s", got)
	}
}

// TestMessagesThatComeAgain: a counted message counts once, however often it comes: from Pub/Sub, and after lost
// responses.
func TestMessagesThatComeAgain(t *testing.T) {
	s := newService(t, func(s *pb.Subscription) { s.EnableExactlyOnceDelivery = true })
	r := begin(t, s, "-route", countsRoute)
	r.conn.Inject(tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.CheckAndMutateRow).Times(5))
	var ids []string
	for range 20 {
		ids = append(ids, s.publish(`{"device":"d","at":1767225600,"bytes":10}`))
	}
	eventually(t, "not all messages are acknowledged", func() bool { return s.acks(ids) == len(ids) })
	for _, id := range ids {
		r.handle(&pubsub.Message{ID: id, Data: []byte(`{"device":"d","at":1767225600,"bytes":10}`)}) // as after a lost acknowledgement
	}
	n, sum := r.counts(t, "d")
	if n != 20 || sum != 200 {
		t.Errorf("%d messages with %v bytes are counted, want 20 with 200", n, sum)
	}
}

// counts returns how many messages of a device are counted, and their bytes.
func (r *rig) counts(t testing.TB, device string) (int64, float64) {
	return countsOf(t, r.repository(t, "views"), device)
}

func countsOf(t testing.TB, repo *tsdb.Repository[codec.Record], device string) (int64, float64) {
	t.Helper()
	bytes := rollup.Measure[codec.Record]{Name: "bytes", Decimals: 3, Max: 1e12, Of: func(v codec.Record) (float64, bool) {
		n, _ := v.Lookup("bytes")
		return n.Number()
	}}
	counts := rollup.MustDefine(inbound.CountName, window.Every(time.Hour), []rollup.Measure[codec.Record]{bytes}, rollup.Options{Mode: rollup.ByMessage, Remember: 24 * time.Hour, MaxMessages: 100_000})
	schema := tsdb.MustDefine("views", tsdb.Key("device"), codec.Records(), tsdb.SchemaOptions{MaxFuture: 24 * time.Hour, Rollups: []tsdb.Rollup{counts}})
	total, err := rollup.For(counts, schema.For(repo.Store(), acme)).Total(tenant.NewContext(t.Context(), acme), tsdb.NewEntity(device), tsdb.Between(start, start.Add(time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	return total.Points, total.Values[0].Sum
}

// TestOrderingKeys: messages of one key are stored in their order, so that the last value of a field stays.
func TestOrderingKeys(t *testing.T) {
	s := newService(t, func(s *pb.Subscription) { s.EnableMessageOrdering = true })
	r := begin(t, s, "-route", pointsRoute+" merge", "-attributes", "site")
	r.conn.Inject(tsdbtest.Fail(codes.Unavailable).On(tsdbtest.CheckAndMutateRow).Times(3))
	var ids []string
	for i := range 20 {
		ids = append(ids, s.PublishOrdered(topic, fmt.Appendf(nil, `{"device":"d","ts":1767225600,"n":%d,"f%d":1}`, i, i%3), map[string]string{"owner": "acme", "site": "berlin"}, "d"))
	}
	eventually(t, "not all messages are acknowledged", func() bool { return s.acks(ids) == len(ids) })
	if got, want := r.latest(t, "berlin", "d"), "{f0=1i f1=1i f2=1i n=19i}"; got != want {
		t.Errorf("stored: %s, want %s", got, want)
	}
}

// TestArrivalOfABatch: messages of one device that are published at once are points of their own, and one that comes
// again is the same point.
func TestArrivalOfABatch(t *testing.T) {
	s := newService(t, nil)
	r := begin(t, s, "-route", "tenant=acme dataset=telemetry key=device time=arrival")
	s.SetTimeNowFunc(func() time.Time { return start })
	two := func(i int) string { return fmt.Sprintf(`[{"device":"d","n":%d},{"device":"d","n":%d}]`, 2*i, 2*i+1) }
	var ids []string
	for i := range 20 {
		ids = append(ids, s.publish(two(i)))
	}
	eventually(t, "not all messages are acknowledged", func() bool { return s.acks(ids) == len(ids) })
	for i, id := range ids {
		r.handle(&pubsub.Message{ID: id, PublishTime: start, Data: []byte(two(i))})
	}
	got := map[codec.Value]int{}
	for p, err := range r.repository(t, "telemetry").Range(tenant.NewContext(t.Context(), acme), tsdb.NewEntity("d"), tsdb.Between(start, start.Add(time.Millisecond)), tsdb.OldestFirst) {
		if err != nil {
			t.Fatal(err)
		}
		n, _ := p.Value.Lookup("n")
		got[n]++
	}
	for n := range 2 * len(ids) {
		if got[codec.Int(int64(n))] != 1 {
			t.Errorf("the object %d is %d points, want 1", n, got[codec.Int(int64(n))])
		}
	}
}
