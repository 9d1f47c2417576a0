package tsdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/lastvalue"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

// Precision is the unit of time in row keys: Nanoseconds, Microseconds or Milliseconds. It is part of the stored format
// and cannot change. Times are truncated to the unit. Without SchemaOptions.Identity, two points of an entity in the
// same unit are the same point.
type Precision uint8

// The precisions. None can hold times before 1970.
const (
	// Nanoseconds, the default, hold times up to 2262-04-11.
	Nanoseconds Precision = Precision(rowkey.Nanoseconds)
	// Microseconds hold times up to the end of the year 9999.
	Microseconds Precision = Precision(rowkey.Microseconds)
	// Milliseconds hold times up to the end of the year 9999. Schemas with heads, and tables shared with other
	// programs, use them.
	Milliseconds Precision = Precision(rowkey.Milliseconds)
)

// String returns "ns", "us" or "ms", as in the catalogue.
func (p Precision) String() string { return rowkey.Precision(p).String() }

// defaultClass is the retention class of a schema that names none.
var defaultClass = gc.Class{Name: "keep", Policy: gc.Never()}

// Head configures head rows: one extra row per entity, which holds its newest points. With heads, LatestMany costs one
// request for many entities, and PrefixReader.Latest and Entities read one row per entity. Reads of one entity use its
// points and cost the same. Head is part of the stored format and cannot change. The zero Head means no heads.
//
// Writes pay for it:
//
//   - Each write sets two rows instead of one. With FirstWins the head is a second request; with Merge, or with FirstWins and
//     Classes, it is three more.
//   - The head of an entity that is written often becomes a hot row, which holds all versions since Bigtable's last garbage
//     collection. Do not use heads for more than some tens of writes per second to one entity.
//   - Deletions repair the head, at the cost of a few requests per entity.
//
// If retention classes of one schema differ in age, older points can outlive newer ones that replaced them in the head.
// LatestMany then also reads the points of entities whose head holds too few points that are too young to have expired
// in any class, and PrefixReader.Latest and Entities use only the points.
//
// A write is Stored if both rows are written, and Unknown if only one is known to be. Repeating the write, or a failed
// deletion, repairs the difference. Reads under a prefix find entities, and the newest time, by heads. So they may miss
// a point without its head: one whose write is under way, or was Unknown. The two rows are not written atomically: if
// two writers write different values of one point at the same time, or one writes and another deletes, each row may
// keep another result. The points are then correct; the head follows when the point is written or deleted again. With
// FirstWins, or if a point has only one possible value, concurrent writers cannot cause this.
type Head struct {
	// Points is the number of points in a head, 1 to 100. Zero means none. Heads need Milliseconds precision,
	// because cell timestamps identify the points in a head. The payloads of a head share 10 MiB: with 5 points, each
	// may have 2 MiB.
	Points int `json:"points"`
	// Only stores heads and no other rows: a short history of the newest points, in one row per entity, with all calls
	// of a repository. A point is gone as soon as Points newer ones are stored. Until Bigtable has collected it, it may
	// reappear if a newer point is deleted or, in a shorter class, expires, and PutIfAbsent may find it. Only cannot be
	// combined with FirstWins or Merge.
	Only bool `json:"only,omitempty"`
	// Fields keeps the newest value of each field of an entity's points in the head, with the time of its point, so
	// that LatestFields reads one row per entity. Points may then be 0. It needs Milliseconds precision and one codec:
	// codec.JSON of a struct, codec.Proto, or codec.Records with Merge. Other payloads would leave a field in the head
	// when a point is written again without it. It cannot be combined with FirstWins, Only or Identity.
	//
	// A write sets two cells per field of the point, and clears those of the fields that it does not have. A deletion
	// of the newest value of a field finds the one before in up to 1,000 older points; if there is none, each
	// LatestFields of the entity searches its points, until the field is written again. So does one of an entity with
	// more than 10,000 fields, of which its head keeps all names. A payload has at most 100 MiB divided by the number
	// of fields. Fields can be added to the type, and removed: Ensure adds them to the catalogue. Points that were
	// stored before by other programs do not show an added field.
	Fields bool `json:"fields,omitempty"`
}

// SchemaOptions configure a schema. With the zero value points never expire, times are in nanoseconds, entities are not
// salted, the last write of a point wins, and any time is accepted.
type SchemaOptions struct {
	// Retention is the class that points are written in: a column family with its garbage collection policy, shared by
	// all schemas that name it. The zero Class is "keep", which never expires. Policies that count versions are
	// refused, because a point has one cell.
	Retention gc.Class
	// Classes lists further classes, which a tenant's profile can choose (tenants.Profile). Points of other tenants are
	// written in Retention. The class decides how long a point lives, and whether it has expired on arrival. Reads,
	// predicates and deletions cover all classes: after a change of class, old points remain readable until they expire
	// in their own class. Writing a point again moves it to the current class; with FirstWins it stays where it is.
	// Reads filter by each class, and go back as far as the longest one.
	//
	// A store reads the profiles at its first write to such a schema, and applies changes within two minutes. If it
	// cannot read them, it uses those it has read last, and rejects points if it has never read them. A Writer uses the
	// class at the time of sending. A class that a profile names but Classes does not list has no effect: deploy the
	// programs with a new class first. Rollups stay in their own class, within RollupAges, and are not derived for
	// times at which points have expired in the shortest class.
	Classes []gc.Class
	// RollupAges limits the age of a tenant's rollups. The key is the name of the class of the tenant's points:
	// Retention or one of Classes. Each bucket is kept, from its start, for this age or for the age of the rollup's own
	// class, whichever is shorter. Rollups of classes that are not in the map keep their own age. An age is in whole
	// seconds, at least the age of the class's points, and longer than any bucket that is computed from another rollup
	// plus its lateness.
	//
	// The tenant's current class applies to all its buckets, old ones too, and is known within two minutes: a tenant
	// that moves to a class with a shorter age loses older buckets. They disappear from reads immediately, and new
	// events for them are rejected with ErrExpired. A rollup.Worker deletes them once a day; Bigtable cannot, because
	// tenants share families. Ensure does not change stored ages; a plan of package retention does.
	RollupAges map[string]time.Duration
	// FormerClasses lists classes in which points were written earlier. Reads cover them until these points expire.
	FormerClasses []gc.Class
	// Precision is the unit of time in row keys. Zero is Nanoseconds.
	Precision Precision
	// Identity makes an ID part of each point, for events: an entity can then have several points at one time. Set the
	// ID in Point.ID or with Repository.WithID. Writing a point with the same time and ID replaces it. Points of one
	// time are ordered by ID, byte by byte, ascending when the read is newest first and descending when it is oldest
	// first, so Latest returns the smallest ID. An ID has 1 to 64 bytes of A-Z a-z 0-9 . _ - and :. It is part of the
	// row key, so it should not hold personal data. Identity cannot be combined with Head, and the last-value cache
	// does not hold such points. It is part of the stored format.
	Identity bool
	// Salts spreads a tenant's entities over 2 to 100 parts of the tenant's key range. Use it only if one tenant writes
	// faster than one server accepts; Bigtable splits ranges by load, so most datasets do not need it. Reads of one
	// entity cost the same; deletions below a prefix use one range per salt. Zero means no salts. It is part of the
	// stored format.
	Salts int
	// FirstWins makes the first write of a point final: Put of another value is rejected with ErrExists. It costs one
	// conditional write per point, which Bigtable accepts only through single-cluster routing and not in bulk. By
	// default the last write wins.
	FirstWins bool
	// Merge makes Put add fields to an existing point; if both have a field, the written value replaces the stored one.
	// The codec must write codec.Records. Payloads, including merged ones, are limited to 8 KiB. It costs one
	// conditional write per point, and a read and a second write if the point exists. Bigtable accepts conditional
	// writes only through single-cluster routing and not in bulk. Merge cannot be combined with FirstWins. It is part
	// of the stored format.
	Merge bool
	// Immutable, with Merge, is a prefix of field names. Fields with this prefix can be added to a point but never
	// changed: a Put that would change one is rejected as a whole with ErrExists. Empty means no such fields; otherwise
	// 1 to 32 bytes of UTF-8. It is part of the stored format.
	Immutable string
	// Head keeps the newest points of each entity together in one row. Zero means no heads. It is part of the stored
	// format.
	Head Head
	// Rollups are the aggregates of the points, or of events: see package rollup. Each write of a point marks the
	// buckets of the rollups that are derived from points. Zero is none. They are part of the stored format. Ensure
	// adds a new rollup to the catalogue; it is complete after it is rebuilt.
	Rollups []Rollup
	// NullClears makes a null in JSON the value of a field for LatestFields: from then on the field is null. By default
	// null says nothing, as if the payload did not have the field. It is not part of the stored format.
	NullClears bool
	// MaxLate is the maximum age of a point when it is written; older points are rejected with ErrLate. Zero means no
	// limit except the retention.
	MaxLate time.Duration
	// MaxFuture is how far in the future a point may be when it is written; later points are rejected with
	// ErrTooFarAhead. Without a limit, one point from a wrong clock can remain the newest for years. Zero means no
	// limit.
	MaxFuture time.Duration
	// CheckKeys checks each part of an entity before a point is written. It gets the name of the key field and the
	// part as in Entity.Parts. If it returns an error, the point is rejected with ErrInvalid; the error should name
	// the field and not show the value. Use it to keep personal data out of keys: see package tsdb/keys. Many
	// goroutines call it at once, and it must be quick. It is not called for reads and deletions, so existing data
	// can still be found and removed, nor again for points in a journal. Nil accepts all. It is not part of the
	// stored format.
	CheckKeys func(field, part string) error
}

// Schema describes one kind of measurement: the dataset's name and format, and how values of type T are encoded. It
// belongs to no store and no tenant; For binds it to both. Define makes one. It is immutable and safe for concurrent
// use.
type Schema[T any] struct {
	datasetGate

	d        dataset.Dataset
	codec    codec.Codec[T]
	decoders []func([]byte) (T, error) // by tag
	joined   []func([]byte) (T, error) // by tag: of payloads whose fields were joined
	layouts  []fieldLayout             // by tag
	numbers  fieldNumbers              // of the fields that rollups are computed from
	plain    bool                      // copies of a value share no mutable memory
	listed   []Rollup                  // SchemaOptions.Rollups
}

// Dataset is any *Schema, for calls that take several: Store.Ensure and Store.Verify. Store.Datasets returns those of
// the catalogue. Other types cannot implement it.
type Dataset interface {
	// Name returns the dataset's name.
	Name() string
	// Entity, Prefix and Scan are those of Schema.
	Entity(values ...any) (Entity, error)
	Prefix(values ...any) (Prefix, error)
	Scan(e Entity, into ...any) error

	datasetFace
	shape() *dataset.Dataset
	rollups() []Rollup
}

// Define returns the schema of a dataset: its name (1 to 32 bytes of A-Z a-z 0-9 . _ -), its key fields, and the codec
// of its values. It does no I/O, so programs can define datasets at run time. Errors match ErrInvalid and name the
// field, the value and the limit.
func Define[T any](name string, key KeyFields, c codec.Codec[T], opts SchemaOptions) (*Schema[T], error) {
	s, err := define(name, key, c, opts)
	if err != nil {
		return nil, fmt.Errorf("dataset %s: %w", invalid.Quote(name), invalid.Input(err))
	}
	return s, nil
}

// MustDefine is Define for package variables. It panics if Define fails.
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
	if err := cmp.Or(
		invalid.Range(ErrInvalid, "MaxLate", opts.MaxLate, 0, 0, "0 for none, or more"),
		invalid.Range(ErrInvalid, "MaxFuture", opts.MaxFuture, 0, 0, "0 for none, or more"),
	); err != nil {
		return nil, err
	}
	classes, err := dataset.NewClasses(opts.classes())
	if err != nil {
		return nil, err
	}
	for i := range opts.Classes {
		classes[1+i].Choice = true
	}
	s := &Schema[T]{codec: c, plain: lastvalue.Copyable(reflect.TypeFor[T]()), d: dataset.Dataset{
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
	readers := codec.Readers(c)
	for _, r := range readers {
		s.d.Tags = append(s.d.Tags, r.Tag)
		s.decoders = append(s.decoders, r.Decode)
	}
	s.setLayouts(readers)
	written := &s.layouts[0]
	s.d.Shape, s.d.Format, s.d.Unpack, s.d.NullClears = written.shape, written.Format, written.Unpack, opts.NullClears
	definitions, err := definitionsOf(opts.Rollups)
	if err != nil {
		return nil, err
	}
	rollups := make([]catalog.Rollup, len(definitions))
	for i, of := range definitions {
		rollups[i] = of.Entry
	}
	s.listed = slices.Clone(opts.Rollups)
	if err := s.d.Complete(rollups, opts.RollupAges); err != nil {
		return nil, err
	}
	if err := checkSources(&s.d, definitions); err != nil {
		return nil, err
	}
	if s.numbers, err = numbersOf(readers, &s.d); err != nil {
		return nil, err
	}
	return s, s.d.CheckFamilies()
}

// classes returns the classes in the order in which reads look for payloads.
func (o SchemaOptions) classes() []gc.Class {
	written := o.Retention
	if written.Name == "" && written.Policy.Equal(gc.Never()) {
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

// rollups returns the definitions of the rollups in the schema's order.
func (s *Schema[T]) rollups() []Rollup { return s.listed }

// shape returns nil for a schema that Define did not make.
func (s *Schema[T]) shape() *dataset.Dataset {
	if s == nil || s.d.Name == "" {
		return nil
	}
	return &s.d
}

// For returns the repository of this schema for one tenant in one store. It does no I/O and cannot fail: each call on
// the repository reports a nil store or a zero tenant.
func (s *Schema[T]) For(store *Store, id tenant.ID) *Repository[T] {
	r := &Repository[T]{schema: s, access: access{store: store}}
	r.rows.Tenant = id
	if s.shape() == nil {
		r.err = invalid.New(ErrInvalid, "schema", "the zero value", "a schema from Define")
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

// FromContext returns the repository of this schema for the context's tenant (tenant.NewContext). The error is
// ErrNoTenant if the context carries none, and matches tenant.ErrInvalid if it carries the zero ID.
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
