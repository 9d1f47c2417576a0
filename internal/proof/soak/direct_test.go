package soak

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/growth"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

var soakLive = flag.String("soak.live", "", "projects/P/instances/I: TestDirectAccess runs there, on a table that it makes and removes")

// Bounds of TestDirectAccess. Each phase has half of -soak.
const (
	pool         = 10 // channels that the client opens for a store: bigtable v1.58.0, internal/option, defaultBigtableConnPoolSize
	users        = 4
	usersPause   = 20 * time.Millisecond
	mostSampling = 15 * time.Second
	leastSamples = 100
	openTimeout  = time.Minute
	callTimeout  = 20 * time.Second
)

// TestDirectAccess looks for memory that grows in the official client and in the SDK: with one store that is used all
// the time, and while a second one is opened and closed again and again, which opens and closes the client's channels.
// The client itself does that only once a week (bigtable v1.58.0, internal/option, MaxAge), so growth by it takes too
// long to wait for.
//
// With -soak.live it runs on that instance, and fails if no channel uses Direct Access. Otherwise an engine in another
// process serves.
func TestDirectAccess(t *testing.T) {
	testkit.Plain(t)
	o := newOpener(t)
	sampler := growth.NewSampler()
	before := take(t, sampler)
	store := o.open(t)
	defer func() { _ = store.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), openTimeout)
	defer cancel()
	if err := store.Ensure(ctx, direct); err != nil {
		t.Fatal(err)
	}
	opened := take(t, sampler)
	targets, err := sampler.Targets()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("opening a store adds %d KiB of heap, %d goroutines, %d channels and sockets: to %v", (opened.Values[growth.Heap]-before.Values[growth.Heap])>>10,
		opened.Values[growth.Goroutines]-before.Values[growth.Goroutines], opened.Values[growth.Channels]-before.Values[growth.Channels], targets)
	if *soakLive != "" && !usesDirectAccess(targets) {
		t.Fatal("no channel uses Direct Access: run this on Compute Engine in a region of the instance, with the roles and the network that Direct Access needs, " +
			"and without CBT_ENABLE_DIRECTPATH=false")
	}
	every := min(*soakFor/2/leastSamples, mostSampling)
	t.Run("one store", func(t *testing.T) {
		samples, _ := use(t, store, sampler, every, func(context.Context) error { return nil })
		report(t, samples, growth.Default)
	})
	t.Run("stores opened and closed", func(t *testing.T) {
		samples, times := use(t, store, sampler, every, func(ctx context.Context) error {
			another, err := o.try(ctx)
			if err != nil {
				return err
			}
			return errors.Join(another.Ping(ctx), another.Close())
		})
		for _, v := range report(t, samples, growth.Default) {
			if v.Quantity == growth.Heap && v.Span > 0 {
				each := v.Slope * v.Span.Hours() / float64(v.Samples)
				t.Logf("the heap's growth for each of %d stores opened: %.1f KiB, or %.1f KiB for each of its %d channels", times, each/1024, each/1024/pool, pool)
			}
		}
	})
}

func usesDirectAccess(targets map[string]int) bool {
	for target := range targets {
		if strings.HasPrefix(target, "google-c2p:") {
			return true
		}
	}
	return false
}

// report logs the verdicts, and fails the test if a quantity grows, or if a long run cannot be judged.
func report(t *testing.T, samples []growth.Sample, bounds growth.Bounds) []growth.Verdict {
	t.Helper()
	verdicts := growth.Judge(samples, bounds)
	text, grows := growth.Report(verdicts)
	t.Log(text)
	if grows {
		t.Error("memory grows")
	}
	if *soakFor >= time.Minute && len(verdicts) > 0 && verdicts[0].Samples < growth.MinSamples {
		t.Errorf("%d samples are too few to judge: the service is slow", len(samples))
	}
	return verdicts
}

// opener opens stores on the scratch table.
type opener struct{ config tsdb.Config }

var instanceName = regexp.MustCompile(`^projects/([^/]+)/instances/([^/]+)$`)

// newOpener returns an opener of the instance that the flag names, or of an engine. The table is removed at the end.
func newOpener(t *testing.T) opener {
	table := "tidemark-soak-" + strings.ToLower(rand.Text()[:8])
	if *soakLive == "" {
		return opener{tsdb.Config{
			Project: "local", Instance: "local", Table: table, DisableDirectAccess: true, MetricsProvider: bigtable.NoopMetricsProvider{},
			ClientOptions: []option.ClientOption{
				option.WithEndpoint(served(t)), option.WithoutAuthentication(), option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
			},
		}}
	}
	m := instanceName.FindStringSubmatch(*soakLive)
	if m == nil {
		t.Fatalf("-soak.live is %q, want projects/P/instances/I", *soakLive)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
		defer cancel()
		admin, err := bigtable.NewAdminClient(ctx, m[1], m[2])
		if err != nil {
			t.Errorf("the table %s is left: %v", table, err)
			return
		}
		defer admin.Close()
		if err := admin.DeleteTable(ctx, table); err != nil {
			t.Errorf("the table %s is left: %v", table, err)
		}
	})
	return opener{tsdb.Config{Project: m[1], Instance: m[2], Table: table}}
}

func (o opener) open(t *testing.T) *tsdb.Store {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), openTimeout)
	defer cancel()
	store, err := o.try(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func (o opener) try(ctx context.Context) (*tsdb.Store, error) { return tsdb.Open(ctx, o.config) }

// direct is the dataset of TestDirectAccess. Its points are few, and are written again and again.
var direct = tsdb.MustDefine("direct", tsdb.Key("device"), codec.JSON[float64](), tsdb.SchemaOptions{Retention: gc.Class{Name: "week", Policy: gc.MaxAge(7 * 24 * time.Hour)}})

// use makes requests of every kind for half of -soak, and takes samples at distances, each after a call of between. It
// returns how many calls succeeded. A tenth of them may fail, and of the requests.
func use(t *testing.T, store *tsdb.Store, sampler *growth.Sampler, every time.Duration, between func(context.Context) error) (samples []growth.Sample, times int) {
	ctx, cancel := context.WithTimeout(t.Context(), *soakFor/2)
	defer cancel()
	var load sync.WaitGroup
	var calls, failed atomic.Int64
	var last atomic.Pointer[error]
	writer, err := store.NewWriter(tsdb.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now().Truncate(time.Second)
	for n := range users {
		load.Go(func() {
			for i := n; pause(ctx, usersPause); i++ {
				calls.Add(1)
				if err := request(t.Context(), store, writer, began, i); err != nil {
					failed.Add(1)
					last.Store(&err)
				}
			}
		})
	}
	wrong := 0
	for pause(ctx, every) {
		call, done := context.WithTimeout(t.Context(), openTimeout)
		if err := between(call); err != nil {
			wrong++
			last.Store(&err)
		} else {
			times++
		}
		done()
		samples = append(samples, take(t, sampler))
	}
	load.Wait()
	end, done := context.WithTimeout(t.Context(), callTimeout)
	defer done()
	if err := writer.Close(end); err != nil {
		t.Error(err)
	}
	t.Logf("%d requests, %d of them failed; %d samples", calls.Load(), failed.Load(), len(samples))
	if failed.Load() > calls.Load()/10 || wrong > (wrong+times)/10 {
		t.Errorf("%d of %d requests failed, and opening a store %d of %d times; the last error is %v", failed.Load(), calls.Load(), wrong, wrong+times, *last.Load())
	}
	return samples, times
}

// request makes the request with a number.
func request(ctx context.Context, store *tsdb.Store, writer *tsdb.Writer, began time.Time, i int) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	repo := direct.For(store, must(tenant.Parse("soak")))
	device := func(i int) tsdb.Entity { return tsdb.NewEntity(fmt.Sprintf("d%d", i%50)) }
	at := began.Add(-time.Duration(i%20) * time.Minute)
	switch i % 6 {
	case 0:
		return repo.Put(ctx, device(i), at, float64(i))
	case 1:
		return repo.Via(writer).Enqueue(ctx, device(i), at, float64(i))
	case 2:
		_, err := repo.LatestMany(ctx, []tsdb.Entity{device(i), device(i + 1), device(i + 2)}, 1)
		return err
	case 3:
		_, err := repo.PutIfAbsent(ctx, device(i), at, float64(i))
		return err
	case 4:
		for _, err := range repo.Range(ctx, device(i), tsdb.Since(began.Add(-time.Hour))) {
			return err // after the first point: a stream that ends early
		}
		return nil
	}
	_, err := repo.Latest(ctx, device(i))
	if errors.Is(err, tsdb.ErrNotFound) {
		return nil
	}
	return err
}

func take(t *testing.T, s *growth.Sampler) growth.Sample {
	t.Helper()
	sample, err := s.Take()
	if err != nil {
		t.Fatal(err)
	}
	return sample
}
