package adopt

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

var errEnough = errtype.New("adopt.enough", "adopt: enough")

// VerifyOptions configure a verification. The zero value compares all points.
type VerifyOptions struct {
	// Before compares only points of earlier times, so that points which are being written do not count. Zero compares
	// all.
	Before time.Time
	// RangePoints is how many stored points are in a compared range at first. Zero is 10,000. Ranges become larger
	// where there would be more than 65,536.
	RangePoints int
}

// Verified is the result of a verification. It marshals to JSON.
type Verified struct {
	// Source is how many points the foreign table has, as mapped. Stored is how many the dataset has.
	Source int64 `json:"source"`
	Stored int64 `json:"stored"`
	// Ranges is how many ranges were compared, and Different are those that differ, up to 1,000.
	Ranges    int         `json:"ranges"`
	Different []Different `json:"different"`
	// Skipped is what of the foreign table is no point, by the reasons of Unfit. Refused is how many of them the
	// mapping does not skip: a copy ends there. Expiring is how many points of both sides together were not compared,
	// because they expire within an hour, or have expired.
	Skipped  map[string]int64 `json:"skipped"`
	Refused  int64            `json:"refused"`
	Expiring int64            `json:"expiring"`
}

// Different is a range of row keys of the dataset whose points differ from those of the foreign table.
type Different struct {
	// Start is the first row key, and End the first key after the range. An empty End is the end of the dataset.
	Start string `json:"start"`
	End   string `json:"end"`
	// Source and Stored count the points. If they are equal, keys or payloads differ.
	Source int64 `json:"source"`
	Stored int64 `json:"stored"`
	// Examples name points that differ, up to 5 in all ranges together: "missing", "extra" or "different", and the row
	// key.
	Examples []string `json:"examples,omitempty"`
}

// Same reports whether no range differs and nothing is refused.
func (v *Verified) Same() bool { return v != nil && len(v.Different) == 0 && v.Refused == 0 }

const (
	maxRanges    = 1 << 16
	maxDifferent = 1000
	maxCompared  = 200_000 // points in memory, to find examples
	expiresSoon  = time.Hour
)

// Verify compares the foreign table, as mapped, with the dataset: for each range of row keys the number of points, and
// a checksum of their row keys, codec tags and payloads. It reads both as a whole, one after the other, so it is exact
// only while neither is written to; see VerifyOptions.Before. If ranges differ, it reads both again to name some of the
// points. Where row keys have the tenant, it compares the tenants of which the foreign table has a row.
//
// The checksum of a range is the sum of the SHA-256 of its points, 128 bits of each, so the order in which they are
// read does not matter. It detects accidents, not forgery. Verify costs a request for every 1,000 rows of each side. It
// holds 65,536 ranges in memory, about 10 MiB, and the names of the tenants.
func (s *Source) Verify(ctx context.Context, store *tsdb.Store, opts VerifyOptions) (_ *Verified, err error) {
	if err := errors.Join(s.check(), required(store)); err != nil {
		return nil, err
	}
	to, err := s.open(ctx, store)
	if err != nil {
		return nil, err
	}
	if opts.RangePoints <= 0 {
		opts.RangePoints = 10_000
	}
	v := &verifying{Source: s, to: to, size: int64(opts.RangePoints), newest: to.precision.Max(), out: &Verified{Skipped: map[string]int64{}}}
	if !opts.Before.IsZero() {
		v.newest, _ = to.precision.AtOrBefore(opts.Before.Add(-1))
		if opts.Before.Unix() < 0 {
			v.newest = -1
		}
	}
	if at, ok := v.expiring(); ok {
		v.oldest = at
	}
	if err := v.run(ctx); err != nil {
		return nil, err
	}
	return v.out, nil
}

// verifying is one call of Verify.
type verifying struct {
	*Source
	to             *target
	size           int64 // points of a range
	oldest, newest int64 // in units; what is compared
	ranges         []sums
	out            *Verified
}

// sums are those of a range of stored row keys.
type sums struct {
	start          string
	stored, source side
}

// side is the points of a range on one side.
type side struct {
	count int64
	sum   [2]uint64
}

func (s *side) add(o side) {
	s.count += o.count
	s.sum[0] += o.sum[0]
	s.sum[1] += o.sum[1]
}

// expiring returns the time in units before which points may be hidden during the verification.
func (v *verifying) expiring() (int64, bool) {
	var at int64
	for i := range v.to.shape.Classes {
		c := &v.to.shape.Classes[i]
		if c.Name != v.to.class || !c.Bounded {
			continue
		}
		units, ok := v.to.precision.AtOrAfter(v.to.in.Clock().Add(expiresSoon - c.Age))
		return units, ok
	}
	return at, false
}

func (v *verifying) run(ctx context.Context) error {
	if err := v.eachStored(ctx, v.addStored); err != nil {
		return err
	}
	if len(v.ranges) == 0 {
		v.ranges = []sums{{}}
	}
	if err := v.eachSource(ctx, v.addSource, true); err != nil {
		return err
	}
	differs := map[int]bool{}
	compared := int64(0)
	for i, r := range v.ranges {
		v.out.Source += r.source.count
		v.out.Stored += r.stored.count
		if r.source == r.stored {
			continue
		}
		if len(v.out.Different) < maxDifferent {
			d := Different{Start: r.start, Source: r.source.count, Stored: r.stored.count}
			if i+1 < len(v.ranges) {
				d.End = v.ranges[i+1].start
			}
			v.out.Different = append(v.out.Different, d)
		}
		if compared += r.stored.count; len(differs) == 0 || compared <= maxCompared {
			differs[i] = true
		}
	}
	v.out.Ranges = len(v.ranges)
	if len(differs) == 0 {
		return nil
	}
	return v.explain(ctx, differs)
}

// visitPoint gets a point's row key in the store, and the hash of the point.
type visitPoint func(key string, hash [2]uint64) error

func hashOf(key, tag string, payload []byte) [2]uint64 {
	h := sha256.New()
	h.Write([]byte(key))
	h.Write([]byte{0})
	h.Write([]byte(tag))
	h.Write([]byte{0})
	h.Write(payload)
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	return [2]uint64{binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])}
}

// eachStored visits the dataset's points of the foreign table's tenants, in the order of their row keys.
func (v *verifying) eachStored(ctx context.Context, visit visitPoint) error {
	var ids []tenant.ID
	err := v.tenants(ctx, v.to.precision, func(id tenant.ID) error {
		ids = append(ids, id)
		return nil
	})
	if err != nil {
		return err
	}
	// The store sorts tenants by name. A foreign table with a separator such as / has tenant a-b before tenant a.
	slices.SortFunc(ids, func(a, b tenant.ID) int { return cmp.Compare(a.String(), b.String()) })
	for _, id := range ids {
		if err := v.storedOf(ctx, id, visit); err != nil {
			return err
		}
	}
	return nil
}

// storedOf visits the dataset's points of a tenant.
func (v *verifying) storedOf(ctx context.Context, id tenant.ID, visit visitPoint) error {
	t, err := v.to.of(ctx, id)
	if errors.Is(err, tsdb.ErrErased) {
		return nil
	}
	if err != nil {
		return err
	}
	var key []byte
	return t.raw.Read(ctx, points.Selection{Newest: v.to.precision.Max()}, func(p points.RawPoint) error {
		if err := ctxerr.Of(ctx); err != nil || p.Units > v.newest {
			return err
		}
		if p.Units < v.oldest {
			v.out.Expiring++
			return nil
		}
		key = t.space.AppendEvent(key[:0], p.Path, p.Units, p.ID)
		return visit(string(key), hashOf(string(key), p.Tag, p.Payload))
	})
}

// eachSource visits the points of the foreign table. With count it counts what is left out.
func (v *verifying) eachSource(ctx context.Context, visit visitPoint, count bool) error {
	wrong := func(u *Unfit) error {
		if count {
			v.out.Skipped[u.Reason]++
			if !v.m.skips(u.Reason) {
				v.out.Refused++
			}
		}
		return nil
	}
	start, more := "", true
	for more {
		rows, next, err := v.chunk(ctx, start, "", nil, chunkRows)
		if err == nil {
			err = ctxerr.Of(ctx)
		}
		if err != nil {
			return err
		}
		for _, row := range rows {
			err := v.m.points(row, v.to.precision, func(p point) error {
				if p.units > v.newest {
					return nil
				}
				if p.units < v.oldest {
					if count {
						v.out.Expiring++
					}
					return nil
				}
				t, err := v.to.of(ctx, p.tenant)
				reason := reasonErased
				if err == nil {
					reason = v.to.refuses(t, p)
				}
				if reason != "" && (err == nil || errors.Is(err, tsdb.ErrErased)) {
					return wrong(unfit(reason, p.path, "the dataset refuses it"))
				}
				if err != nil {
					return err
				}
				key := string(t.space.AppendEvent(nil, p.path, p.units, p.id))
				return visit(key, hashOf(key, v.m.tag, p.payload))
			}, wrong)
			if err != nil {
				return err
			}
		}
		if more = next; more {
			start = rows[len(rows)-1].Key() + "\x00"
		}
	}
	return nil
}

// addStored adds a stored point to the last range, or begins another one.
func (v *verifying) addStored(key string, hash [2]uint64) error {
	if n := len(v.ranges); n == 0 || v.ranges[n-1].stored.count >= v.size {
		if n == maxRanges { // two become one
			for i := range maxRanges / 2 {
				v.ranges[i] = v.ranges[2*i]
				v.ranges[i].stored.add(v.ranges[2*i+1].stored)
			}
			clear(v.ranges[maxRanges/2:])
			v.ranges = v.ranges[:maxRanges/2]
			v.size *= 2
		}
		v.ranges = append(v.ranges, sums{start: key})
	}
	v.ranges[len(v.ranges)-1].stored.add(side{1, hash})
	return nil
}

// rangeOf returns the index of the range of a key. The first range also has all keys before it.
func (v *verifying) rangeOf(key string) int {
	return max(0, sort.Search(len(v.ranges), func(i int) bool { return v.ranges[i].start > key })-1)
}

func (v *verifying) addSource(key string, hash [2]uint64) error {
	v.ranges[v.rangeOf(key)].source.add(side{1, hash})
	return nil
}

// explain names points that differ.
func (v *verifying) explain(ctx context.Context, differs map[int]bool) error {
	expiring := v.out.Expiring
	defer func() { v.out.Expiring = expiring }()
	stored := map[string][2]uint64{}
	err := v.eachStored(ctx, func(key string, hash [2]uint64) error {
		if differs[v.rangeOf(key)] && len(stored) < maxCompared {
			stored[key] = hash
		}
		return nil
	})
	if err != nil {
		return err
	}
	whole := len(stored) < maxCompared
	named := 0
	name := func(what, key string) {
		at := v.ranges[v.rangeOf(key)].start
		i := slices.IndexFunc(v.out.Different, func(d Different) bool { return d.Start == at })
		if i >= 0 && named < maxExamples {
			v.out.Different[i].Examples = append(v.out.Different[i].Examples, fmt.Sprintf("%s %s", what, strconv.Quote(short(key))))
			named++
		}
	}
	err = v.eachSource(ctx, func(key string, hash [2]uint64) error {
		if named == maxExamples {
			return errEnough
		}
		if !differs[v.rangeOf(key)] {
			return nil
		}
		switch have, ok := stored[key]; {
		case !ok && whole:
			name("missing", key)
		case ok && have != hash:
			name("different", key)
		}
		delete(stored, key)
		return nil
	}, false)
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	if err == nil && whole {
		for _, key := range slices.Sorted(maps.Keys(stored)) {
			name("extra", key)
		}
	}
	return nil
}
