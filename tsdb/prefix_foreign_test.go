package tsdb_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// forger replaces the prefix of the first key in the response to one of the reads.
type forger struct {
	sync.Mutex
	prefix string // "" forges nothing
	skip   int    // the number of reads before that one
	seen   int    // the number of reads
}

func (f *forger) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, name string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := streamer(ctx, desc, cc, name, opts...)
	if err != nil || name != btpb.Bigtable_ReadRows_FullMethodName {
		return s, err
	}
	return &forgedStream{ClientStream: s, forger: f}, nil
}

type forgedStream struct {
	grpc.ClientStream
	*forger
	began bool
}

func (s *forgedStream) RecvMsg(m any) error {
	if err := s.ClientStream.RecvMsg(m); err != nil {
		return err
	}
	chunks := m.(*btpb.ReadRowsResponse).Chunks
	if s.began || len(chunks) == 0 {
		return nil
	}
	s.began = true
	s.Lock()
	defer s.Unlock()
	if s.seen++; s.prefix != "" && s.seen == s.skip+1 {
		chunks[0].RowKey = []byte(s.prefix + strings.TrimPrefix(string(chunks[0].RowKey), "acme#events#berlin#"))
	}
	return nil
}

// TestPrefixReaderRefusesForeignRows: if the response to any request of a call contains a row of another tenant,
// dataset or prefix, the call fails and returns nothing of the row.
func TestPrefixReaderRefusesForeignRows(t *testing.T) {
	var f forger
	var repo *tsdb.Repository[int64]
	anew := func() { // a store that has met no entities makes other requests
		f.prefix = ""
		repo, _ = fleetOf(t, 12, 40, tsdbtest.Options{DialOptions: []grpc.DialOption{grpc.WithChainStreamInterceptor(f.stream)}})
		f.seen = 0
	}
	berlin := tsdb.NewPrefix("berlin")
	one := tsdb.Concurrency(1) // the same requests in each call
	checked := func(p point, err error) error {
		if err == nil && p.Entity.Parts()[0] != "berlin" {
			t.Errorf("a call returns %v", p)
		}
		return err
	}
	sequence := func(seq func(func(point, error) bool)) (err error) {
		for p, bad := range seq {
			if err = checked(p, bad); err != nil {
				break
			}
		}
		return err
	}
	for name, call := range map[string]func() error{
		"Range": func() error { return sequence(repo.Under(berlin).Range(t.Context(), tsdb.AllTime(), one)) },
		"Range, oldest first": func() error {
			return sequence(repo.Under(berlin).Range(t.Context(), tsdb.AllTime(), one, tsdb.OldestFirst))
		},
		"Merged": func() error { return sequence(repo.Under(berlin).Merged(t.Context(), tsdb.AllTime(), one)) },
		"Merged, oldest first": func() error {
			return sequence(repo.Under(berlin).Merged(t.Context(), tsdb.AllTime(), one, tsdb.OldestFirst))
		},
		"Page": func() error {
			page, err := repo.Under(berlin).Page(t.Context(), tsdb.AllTime(), 100, "", one)
			for _, p := range page.Points {
				_ = checked(p, nil)
			}
			return err
		},
		"LatestN": func() error {
			for h, err := range repo.Under(berlin).LatestN(t.Context(), 3, one) {
				if err != nil {
					return err
				}
				_ = checked(point{Entity: h.Entity}, nil)
			}
			return nil
		},
		"Latest": func() error { return sequence(repo.Under(berlin).Latest(t.Context(), one)) },
		"PageLatest": func() error {
			page, err := repo.Under(berlin).PageLatest(t.Context(), 100, "", one)
			for _, p := range page.Points {
				_ = checked(p, nil)
			}
			return err
		},
		"PageEntities": func() error {
			page, err := repo.Under(berlin).PageEntities(t.Context(), 100, "", one)
			for _, e := range page.Entities {
				_ = checked(point{Entity: e}, nil)
			}
			return err
		},
		"Windows": func() error {
			byHour, err := window.New(window.Every(time.Hour), []window.Measure[int64]{{Name: "n", Kind: window.Counter, Int: itself}}, window.Options{})
			if err != nil {
				return err
			}
			for g, err := range byHour.ReadGroups(t.Context(), repo.Under(berlin), 0, tsdb.Between(start, start.Add(time.Hour)), one) {
				if err != nil {
					return err
				}
				if g.Prefix != berlin || g.Entities != 12 {
					t.Errorf("a call returns group %v of %d", g.Prefix, g.Entities)
				}
			}
			return nil
		},
		"Children": func() error {
			for child, err := range repo.Under(berlin).Children(t.Context(), one) {
				if err != nil {
					return err
				}
				if child[0] != 'd' {
					t.Errorf("a call returns child %q", child)
				}
			}
			return nil
		},
		"Entities": func() error {
			for e, err := range repo.Under(berlin).Entities(t.Context(), tsdb.Between(start, start.Add(time.Second)), one) {
				if err != nil {
					return err
				}
				_ = checked(point{Entity: e}, nil)
			}
			return nil
		},
		"Silent": func() error {
			silent, err := repo.Under(berlin).Silent(t.Context(), start.AddDate(1, 0, 0), 100, one)
			for _, s := range silent {
				_ = checked(point{Entity: s.Entity}, nil)
			}
			return err
		},
	} {
		prefixes := []string{"acme2#events#berlin#", "acme#events2#berlin#", "acme#events#hamburg#"}
		refused := func(skip, reads int, prefix string) {
			f.prefix, f.skip, f.seen = prefix, skip, 0
			if err := call(); !errors.Is(err, tsdb.ErrForeignRow) {
				t.Errorf("%s, read %d of %d with a row at %s: error %v, want ErrForeignRow", name, skip+1, reads, prefix, err)
			}
		}
		reads := func() int {
			f.prefix, f.seen = "", 0
			if err := call(); err != nil {
				t.Fatal(name, err)
			}
			return f.seen
		}
		anew()
		first, later := reads(), reads()
		for skip := range later {
			for n := 0; n < len(prefixes); n += testkit.Stride(3) {
				refused(skip, later, prefixes[(skip+n)%3])
			}
		}
		for skip := 0; skip < first; skip += 3 * testkit.Stride(2) {
			anew()
			refused(skip, first, prefixes[skip/3%3])
		}
	}
}
