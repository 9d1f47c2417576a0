package forecast_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/examples/internal/forecast"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

func TestForecastRefusals(t *testing.T) {
	w := newWorld(t, 30*aDay)
	w.fill(t, "acme", 10, uniform(100, 0, 20*aDay))
	for _, o := range []forecast.Options{
		{Rows: 99}, {Rows: -1}, {Bytes: -1}, {Bytes: 1 << 41}, {Requests: -1}, {Weeks: -1}, {Weeks: 521},
	} {
		if _, err := forecast.New(t.Context(), w.store, o); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("options %+v: %v, want ErrInvalid", o, err)
		}
	}
	if _, err := forecast.New(tenant.NewContext(t.Context(), tenant.MustParse("acme")), w.store, forecast.Options{}); !errors.Is(err, tsdb.ErrTenantMismatch) {
		t.Errorf("forecast with a tenant in the context: %v, want ErrTenantMismatch", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := forecast.New(over, w.store, forecast.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
	if _, err := forecast.New(t.Context(), w.store, forecast.Options{Requests: 1}); !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), "used up") {
		t.Errorf("a table without sizes and with too few requests: %v, want ErrInvalid", err)
	}
	w.conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On("SampleRowKeys"))
	if _, err := forecast.New(t.Context(), w.store, forecast.Options{}); err == nil || !strings.Contains(err.Error(), "PermissionDenied") {
		t.Errorf("without the right to sample: %v, want PermissionDenied", err)
	}
	w.conn.Clear()
	client, _ := tsdbtest.Clients(t, w.conn)
	unguarded, err := tsdb.New(client, tsdbtest.Table, tsdb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := forecast.New(t.Context(), unguarded, forecast.Options{}); !errors.Is(err, bt.ErrUnguarded) {
		t.Errorf("with an unguarded client: %v", err)
	}
	_ = unguarded.Close()
	if _, err := forecast.New(t.Context(), unguarded, forecast.Options{}); !errors.Is(err, tsdb.ErrClosed) {
		t.Errorf("a closed store: %v", err)
	}
	if _, err := forecast.New(t.Context(), nil, forecast.Options{}); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("without a store: %v", err)
	}
}

// TestForecastOutlivesFaults: a broken stream is resumed, and nothing is counted twice.
func TestForecastOutlivesFaults(t *testing.T) {
	w := newWorld(t, 30*aDay)
	w.fill(t, "acme", 10, uniform(20_000, 0, 40*aDay))
	opts := forecast.Options{Rows: 6000}
	want := figures(w.forecast(t, opts))
	w.breaks = 2
	w.conn.Inject(tsdbtest.CutStream(50, codes.Unavailable).On(tsdbtest.ReadRows).Skip(1).Times(3))
	w.conn.Inject(tsdbtest.Fail(codes.Unavailable).On("SampleRowKeys").Times(2))
	f, err := forecast.New(t.Context(), w.store, opts)
	if err != nil || figures(f) != want || w.breaks != 0 {
		t.Errorf("forecast %v, error %v; want %s", f, err, want)
	}
}

// foreignRows returns rows of other tenants.
type foreignRows struct{ grpc.ClientStream }

func (l foreignRows) RecvMsg(m any) error {
	err := l.ClientStream.RecvMsg(m)
	if res, ok := m.(*btpb.ReadRowsResponse); ok && err == nil {
		for _, c := range res.Chunks {
			if bytes.HasPrefix(c.RowKey, []byte("acme#")) {
				c.RowKey = append([]byte("~"), c.RowKey...)
			}
		}
	}
	return err
}

// TestForecastOfRowsThatWereNotAskedFor: a forecast refuses rows that it did not request.
func TestForecastOfRowsThatWereNotAskedFor(t *testing.T) {
	w := newWorld(t, 30*aDay)
	w.fill(t, "acme", 10, uniform(100, 0, 20*aDay))
	spy := grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, name string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		s, err := streamer(ctx, desc, cc, name, opts...)
		return foreignRows{s}, err
	})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{DialOptions: []grpc.DialOption{spy}}, w.schema)
	if err := w.schema.For(store, tenant.MustParse("acme")).Put(t.Context(), tsdb.NewEntity("a", "b"), time.Now(), "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := forecast.New(t.Context(), store, forecast.Options{}); !errors.Is(err, tsdb.ErrForeignRow) {
		t.Errorf("error %v, want ErrForeignRow", err)
	}
}

// TestForecastOfNothingRead: if no row could be read, there are no figures.
func TestForecastOfNothingRead(t *testing.T) {
	w := newWorld(t, 30*aDay)
	w.fill(t, "acme", 100, uniform(40_000, 0, 40*aDay))
	w.cut(t, 700)
	if f, err := forecast.New(t.Context(), w.store, forecast.Options{Requests: 1}); !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), "used up after 1 requests") {
		t.Errorf("forecast %v, error %v", f, err)
	}
	f := w.forecast(t, forecast.Options{Rows: 3000})
	d, err := f.Drops("d30", gc.MaxAge(29*aDay+23*time.Hour+59*time.Minute))
	if err != nil || d.Cells > 0 || !strings.Contains(d.String(), "nothing that the sample met") {
		t.Errorf("drop %v, error %v", d, err)
	}
}

// TestForecastWithinItsBounds: rows, bytes and requests are each bounded.
func TestForecastWithinItsBounds(t *testing.T) {
	testkit.Plain(t)
	w := newWorld(t, 30*aDay)
	w.fill(t, "acme", 100, uniform(40_000, 0, 40*aDay))
	for _, o := range []forecast.Options{
		{Rows: 100}, {Rows: 3000}, {Bytes: 100_000}, {Requests: 5}, {Requests: 30, Rows: 4000}, {Bytes: 1 << 10},
	} {
		f := w.forecast(t, o)
		if o.Bytes > 0 && f.Cost.Bytes > o.Bytes+200 || f.Basis == forecast.Counted {
			t.Errorf("options %+v: cost %+v", o, f.Cost)
		}
		if want := w.of["acme"].bytes; f.Whole.Bytes < want/3 || f.Whole.Bytes > 3*want {
			t.Errorf("%+v: %v %.0f, want %.0f", o, f.Basis, f.Whole.Bytes, want)
		}
	}
}
