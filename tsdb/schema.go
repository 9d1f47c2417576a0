package tsdb

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

// Precision is the unit in which row keys count time: Nanoseconds, Microseconds or Milliseconds. It is part of the stored format
// and cannot change. Times are cut off to a whole unit: without SchemaOptions.Identity, two points of one entity in the same
// unit are one.
type Precision uint8

// The precisions. None can hold times before 1970.
const (
	// Nanoseconds, the default, hold times up to 2262-04-11.
	Nanoseconds Precision = Precision(rowkey.Nanoseconds)
	// Microseconds hold times up to the year 294247.
	Microseconds Precision = Precision(rowkey.Microseconds)
	// Milliseconds hold times up to the year 294247. Use them to match tables that other programs write.
	Milliseconds Precision = Precision(rowkey.Milliseconds)
)

// String returns the name by which the catalogue knows p: ns, us or ms.
func (p Precision) String() string { return rowkey.Precision(p).String() }

// defaultClass is the retention class of a schema that names none.
var defaultClass = gc.Class{Name: "keep", Policy: gc.Never()}

// SchemaOptions are what a schema may decide. The zero value keeps points for ever, in nanoseconds, unsalted, the last
// write of a point winning, at any time.
type SchemaOptions struct {
	// Retention is the class that points are written in: a column family and its garbage collection policy, shared by all
	// schemas that name it. The zero Class is "keep", which never expires. Policies that count versions are refused with
	// gc.ErrVersions: a point has one cell.
	Retention gc.Class
	// Classes lists other classes. The points of a tenant whose profile names one of them (tenants.Profile) are written in that
	// one, those of all other tenants in Retention. The class in which a point is written decides how long the point lives, and
	// whether it has expired on arrival. Reads, predicates and deletions find points in all classes, so that a tenant which
	// changes class goes on reading its old points until they expire in the class that they were written in. To write a point
	// again moves it to the class of now; with FirstWins it stays where it is.
	//
	// A store reads the profiles at its first write to such a schema, and goes by changes within ClassesWithin. The points of a
	// Writer are written in the class of when they are sent. A class that a profile names and the list does not have is not
	// heeded: deploy programs with a new class before profiles name it.
	//
	// Reads filter by each class, and look as far back as the longest one keeps. Rollups keep the class that they declare, within
	// RollupAges; those that are derived are not computed any more where points have expired in the shortest.
	Classes []gc.Class
	// RollupAges says how long rollups of a tenant are kept at most, by the name of the class that the tenant's points are written
	// in: Retention or one of Classes. Without it a tenant whose points are kept for 30 days has hourly means for as long as the
	// rollup's own class says. A bucket is kept from its start on, for the shorter of the two ages; a class that the map does
	// not name, and nil, leave rollups their own. An age is in whole seconds, at least that of the class's points, and longer than
	// any bucket that is computed from another rollup, and its lateness.
	//
	// The class is the one that the profile names now, known within ClassesWithin, whenever a bucket was written: a tenant that is
	// moved to a class with a shorter age loses what is older. Buckets disappear from reads at the moment, as points do, and
	// events for them are rejected with ErrExpired. Families are shared by all tenants, so Bigtable does not collect them: a
	// rollup.Worker deletes them, once a day. Until then they are hidden. Ensure changes no age that is stored; a plan of package
	// retention does.
	RollupAges map[string]time.Duration
	// FormerClasses lists classes that points were written in before, and are still read from until they expire.
	FormerClasses []gc.Class
	// Precision is the unit of time in row keys. Zero is Nanoseconds.
	Precision Precision
	// Identity gives points an ID in addition to their time, for events: two of one entity at one instant are two points. Points
	// are written with the ID in Point.ID, or through Repository.WithID, and to write one again with the same time and ID
	// replaces it. Every read returns all of them: newest first those of one instant are in the order of their IDs, byte by
	// byte, and oldest first in the reverse of that; so the latest of several is the one with the smallest ID. An ID has 1 to 64
	// bytes of A-Z a-z 0-9 . _ - and :, and stands in row keys, so it should hold no personal data. It excludes Head, and the
	// last-value cache keeps none of such points. It is part of the stored format.
	Identity bool
	// Salts spreads a tenant's entities over that many parts of the tenant's key range, 2 to 100, for a dataset that one
	// tenant writes faster than one server takes (Bigtable splits a range by load, so most need none). Reads of one entity
	// cost the same, deletions below a prefix go over one range a salt. Zero is none. It is part of the stored format.
	Salts int
	// FirstWins makes the first write of a point final: Put of another value at the same entity and time is rejected with
	// ErrExists. It costs a conditional write a point, which Bigtable takes through single-cluster routing only and not in
	// bulk. By default the last write wins and a retry is free.
	FirstWins bool
	// Merge makes Put of a point that is there add its fields to it; of a field that both have, the written value stays. It is
	// for schemas that write codec.Records, excludes FirstWins, and limits payloads, the merged ones too, to 8 KiB. It costs a
	// conditional write a point, which Bigtable takes through single-cluster routing only and not in bulk, and where a point
	// is there a read and a second one. It is part of the stored format.
	Merge bool
	// Immutable, with Merge, is what the names of fields start with whose value may be added to a point but never changed: a Put
	// that would change one is rejected with ErrExists, whole. Empty is no such fields; else it is 1 to 32 bytes of UTF-8. It
	// is part of the stored format.
	Immutable string
	// Head asks for a row an entity that keeps its newest points together. Zero is none. It is part of the stored format.
	Head Head
	// Rollups are the aggregates that are kept of the points, or of events in their place: see package rollup. Each write
	// marks the buckets of those that are derived from points. Zero is none. They are part of the stored format; one that is
	// added later is added to the catalogue, and is complete once it is rebuilt.
	Rollups []Rollup
	// MaxLate is how old a point may be when it is written; older ones are rejected with ErrLate. Zero is no limit other
	// than the retention.
	MaxLate time.Duration
	// MaxFuture is how far in the future a point may lie when it is written; others are rejected with ErrTooFarAhead. One point
	// with a wrong clock would otherwise stay the newest for years. Zero is no limit.
	MaxFuture time.Duration
	// CheckKeys is asked about each part of an entity before a point of it is written, with the name of its key field and its
	// value as Entity.Parts gives it. Its error rejects the point with ErrInvalid; it should name the field and not show
	// the value. It is for keys that must not hold personal data: see package tsdb/privacy. It is called by many goroutines at
	// once and has to be quick. Reads and deletions do not ask it, so that what was written before can be found and removed,
	// and points that wait in a journal are not asked about again. Nil accepts all. It is not part of the stored format.
	CheckKeys func(field, part string) error
}

// Schema is one kind of measurement: a dataset's name and shape, and how its values of type T are stored. It belongs to no
// store and no tenant; For binds it to both. A Schema is immutable and safe for concurrent use.
type Schema[T any] struct {
	d        dataset.Dataset
	codec    codec.Codec[T]
	decoders []func([]byte) (T, error) // by tag
	plain    bool                      // a copy of a value shares nothing with it that can be changed
	listed   []Rollup                  // as they were given
}

// Dataset is implemented by every *Schema, whatever its type, for calls that take several: Store.Ensure and Store.Verify.
// Package tsdb/advise returns one for what the catalogue describes.
type Dataset interface {
	// Name returns the dataset's name.
	Name() string
	// Entity, Prefix and Scan are those of Schema.
	Entity(values ...any) (Entity, error)
	Prefix(values ...any) (Prefix, error)
	Scan(e Entity, into ...any) error

	shape() *dataset.Dataset
}

// Define returns the schema of a dataset: its name (1 to 32 bytes of A-Z a-z 0-9 . _ -), its key fields, and the codec of
// its values. It does no I/O, and may be called at run time for datasets that are not known before. Errors match
// ErrInvalid, gc.ErrInvalid, gc.ErrVersions or codec.ErrInvalid, and name field, value and limit.
func Define[T any](name string, key KeyFields, c codec.Codec[T], opts SchemaOptions) (*Schema[T], error) {
	s, err := define(name, key, c, opts)
	if err != nil {
		return nil, fmt.Errorf("dataset %s: %w", invalid.Quote(name), err)
	}
	return s, nil
}

// MustDefine is Define for package variables. It panics where Define fails.
func MustDefine[T any](name string, key KeyFields, c codec.Codec[T], opts SchemaOptions) *Schema[T] {
	s, err := Define(name, key, c, opts)
	if err != nil {
		panic(err)
	}
	return s
}

func define[T any](name string, key KeyFields, c codec.Codec[T], opts SchemaOptions) (*Schema[T], error) {
	if err := errors.Join(rowkey.CheckDataset(name), rowkey.CheckFields(key.names, opts.Salts), rowkey.CheckKinds(key.names, key.kinds), codec.Check(c)); err != nil {
		return nil, err
	}
	if !rowkey.Precision(opts.Precision).Valid() {
		return nil, invalid.New(ErrInvalid, "Precision", opts.Precision.String(), "Nanoseconds, Microseconds or Milliseconds")
	}
	if opts.MaxLate < 0 {
		return nil, invalid.New(ErrInvalid, "MaxLate", opts.MaxLate.String(), "0 for none, or more")
	}
	if opts.MaxFuture < 0 {
		return nil, invalid.New(ErrInvalid, "MaxFuture", opts.MaxFuture.String(), "0 for none, or more")
	}
	classes, err := dataset.NewClasses(opts.classes())
	if err != nil {
		return nil, err
	}
	for i := range opts.Classes {
		classes[1+i].Choice = true
	}
	s := &Schema[T]{codec: c, plain: plain(reflect.TypeFor[T]()), d: dataset.Dataset{
		Name:      name,
		Fields:    key.names,
		Kinds:     key.kinds,
		Classes:   classes,
		Precision: rowkey.Precision(opts.Precision),
		Identity:  opts.Identity,
		Salts:     opts.Salts,
		FirstWins: opts.FirstWins,
		Merge:     opts.Merge,
		Immutable: opts.Immutable,
		Head:      dataset.Head(opts.Head),
		MaxLate:   opts.MaxLate,
		MaxFuture: opts.MaxFuture,
		KeyCheck:  opts.CheckKeys,
	}}
	for _, r := range codec.Readers(c) {
		s.d.Tags = append(s.d.Tags, r.Tag)
		s.decoders = append(s.decoders, r.Decode)
	}
	if err := s.d.Complete(); err != nil {
		return nil, err
	}
	rollups, err := describedRollups(opts.Rollups)
	if err != nil {
		return nil, err
	}
	s.listed = slices.Clone(opts.Rollups)
	if err := s.d.WithRollups(rollups); err != nil {
		return nil, err
	}
	if err := s.d.WithRollupAges(opts.RollupAges); err != nil {
		return nil, err
	}
	if err := checkSources(&s.d, s.listed); err != nil {
		return nil, err
	}
	if err := s.d.CheckFamilies(); err != nil {
		return nil, err
	}
	s.d.WithChoices()
	return s, nil
}

// classes returns the classes in the order in which payloads are looked for.
func (o SchemaOptions) classes() []gc.Class {
	written := o.Retention
	if written.IsZero() {
		written = defaultClass
	}
	return slices.Concat([]gc.Class{written}, o.Classes, o.FormerClasses)
}

// Name returns the dataset's name.
func (s *Schema[T]) Name() string {
	if s == nil {
		return ""
	}
	return s.d.Name
}

// KeyFields returns the names of the key fields.
func (s *Schema[T]) KeyFields() []string {
	if s == nil {
		return nil
	}
	return slices.Clone(s.d.Fields)
}

// Retention returns the class that points are written in, those of tenants aside that are in another of SchemaOptions.Classes.
func (s *Schema[T]) Retention() gc.Class {
	if s.shape() == nil {
		return gc.Class{}
	}
	return s.d.Classes[0].Class
}

// shape returns nil where s was not made by Define.
func (s *Schema[T]) shape() *dataset.Dataset {
	if s == nil || s.d.Name == "" {
		return nil
	}
	return &s.d
}

// For returns the repository of this schema for one tenant in one store. It does no I/O, costs little, and cannot fail: a
// nil store or the zero tenant is reported by each call on the repository.
func (s *Schema[T]) For(store *Store, id tenant.ID) *Repository[T] {
	r := &Repository[T]{schema: s, store: store}
	r.rows.Tenant = id
	if s.shape() == nil {
		r.err = invalid.New(ErrInvalid, "schema", "zero", "one from Define")
		return r
	}
	r.rows.D = &s.d
	r.rows.Space, r.err = s.d.Space(id)
	r.rows.Space = s.d.BesideRollups(r.rows.Space)
	r.rows.Heads = r.rows.Space.Heads()
	if store != nil && store.core != nil {
		r.rows.Table, r.rows.View = store.core, store.core.Rows(id)
	}
	return r
}

// FromContext returns the repository of this schema for the tenant that ctx carries (tenant.NewContext). Its error is
// ErrNoTenant where ctx carries none, and matches tenant.ErrInvalid where it carries the zero ID.
func (s *Schema[T]) FromContext(ctx context.Context, store *Store) (*Repository[T], error) {
	id, ok := tenant.FromContext(ctx)
	if !ok {
		return nil, ErrNoTenant
	}
	r := s.For(store, id)
	if r.err != nil {
		return nil, r.err
	}
	return r, nil
}
