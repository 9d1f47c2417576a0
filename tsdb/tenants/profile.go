package tenants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Profile is what an operator has noted about a tenant. The zero Profile is a tenant of which nothing is noted.
type Profile struct {
	// Name is how people call the tenant, up to 256 bytes of UTF-8. It is stored as it is, and goes when the tenant is erased.
	Name string `json:"name,omitempty"`
	// Retention is the retention class that the tenant's points are written in, of every dataset that offers it
	// (tsdb.SchemaOptions.Classes); in others, and where it is empty, they are written in the dataset's default class. What is
	// written stays in its class. The store that writes the profile goes by a change at once, other open ones within
	// tsdb.ClassesWithin.
	Retention string `json:"retention,omitempty"`
	// Classes are the retention classes for single datasets, by the dataset's name; they are stronger than Retention. Nil is none.
	Classes map[string]string `json:"classes,omitempty"`
	// Limits are the tenant's limits, as JSON of limit.Limits: {"points_per_second": 100}. Stores with tsdb.StoreOptions.ProfileLimits
	// apply them, a change within tsdb.ClassesWithin. What they do not name is that of the defaults of the store's table of limits;
	// 0 is no limit. Onboard refuses others with ErrInvalid. Nil is none.
	Limits json.RawMessage `json:"limits,omitempty"`
	// View says that the tenant has an authorized view.
	View bool `json:"view,omitempty"`
	// Version is how often the profile was written, as Load returned it; 0 for a profile that was not read. Onboard with Replace
	// replaces only that version.
	Version uint64 `json:"version,omitempty"`
}

// OnboardOptions are what an onboarding may decide. The zero value is good.
type OnboardOptions struct {
	// Replace changes a profile that differs. Without it the call fails with ErrConflict. Where Profile.Version is not 0 it fails
	// so too if somebody has changed the profile since that version was read; 0 replaces whatever is stored.
	Replace bool
	// Readmit admits a tenant again whose erasure has ended, as the function Readmit does. Without it an erased tenant is refused.
	Readmit bool
	// MakeView is called, before the profile is written, where Profile.View is set: it makes the tenant's authorized view, or
	// finds it made. Nil makes none.
	MakeView func(ctx context.Context, store *tsdb.Store, id tenant.ID) error
}

// Onboard writes a tenant's profile, and returns it as it is stored. Where an equal one is stored it writes nothing; one that
// differs is an error that matches ErrConflict, unless it is to be replaced. A tenant that is erased is refused with ErrErased.
// Points can be written for tenants that were never onboarded: a profile is a note, not a gate.
//
// A retention class that no dataset offers, or not the one that it is for, is refused with ErrInvalid, by the table's catalogue.
// A program that was not told of a class yet writes in its default class, so deploy the programs before profiles name it.
//
// It costs two reads, one more of all the catalogue where the profile names retention classes, and one conditional write where
// something changes; where that concerns other stores, two reads and two writes more, to let them know. It may be repeated.
func Onboard(ctx context.Context, store *tsdb.Store, id tenant.ID, p Profile, opts OnboardOptions) (_ Profile, err error) {
	ctx, op := inside.Watch(store).Begin(ctx, telemetry.TenantOnboard, telemetry.Subject{Tenant: id.String()})
	defer func() { op.End(err) }()
	r, err := enterFor(ctx, store, id)
	if err != nil {
		return Profile{}, err
	}
	if err := p.check(); err != nil {
		return Profile{}, err
	}
	if err := r.offered(ctx, p); err != nil {
		return Profile{}, err
	}
	if err := r.welcome(ctx, id, opts.Readmit); err != nil {
		return Profile{}, err
	}
	if p.View && opts.MakeView != nil {
		if err := opts.MakeView(ctx, store, id); err != nil {
			return Profile{}, fmt.Errorf("tenants: make the view of %s: %w", id, err)
		}
	}
	doc, stored, err := r.profile(ctx, id)
	switch {
	case err != nil:
		return Profile{}, err
	case doc.Exists() && stored.same(p) && doc.Assigns(p.assignment()):
		return stored, nil
	case doc.Exists() && !stored.same(p) && !opts.Replace:
		return stored, fmt.Errorf("%w: tenant %s has another profile", ErrConflict, id)
	case p.Version != 0 && p.Version != doc.Version():
		return stored, fmt.Errorf("%w: the profile of tenant %s has version %d, not %d", ErrConflict, id, doc.Version(), p.Version)
	}
	saved, err := r.saveProfile(ctx, id, p, doc, stored)
	if err != nil {
		return Profile{}, err
	}
	return readProfile(id, saved)
}

// saveProfile stores a profile where the one that is stored is still doc, and lets stores know where it concerns them.
func (r room) saveProfile(ctx context.Context, id tenant.ID, p Profile, doc catalog.Document, stored Profile) (catalog.Document, error) {
	save := func() (catalog.Document, error) {
		saved, ok, err := catalog.SaveDocument(ctx, r.Table, rowkey.ProfileRows+id.String(), p.full(), doc, func(mut *bigtable.Mutation) {
			catalog.SetAssignment(mut, p.assignment())
		})
		switch {
		case err != nil:
			return doc, r.Explain(err)
		case !ok:
			return doc, fmt.Errorf("%w: profile of tenant %s", ErrConflict, id)
		}
		return saved, nil
	}
	if doc.Assigns(p.assignment()) && sameJSON(stored.Limits, p.Limits) {
		return save()
	}
	change, err := catalog.ProfileChanges.Begin(ctx, r.Table, id.String())
	if err != nil {
		return doc, r.Explain(err)
	}
	saved, err := save()
	if err != nil && !errors.Is(err, ErrConflict) {
		return doc, err // it may be stored yet: the change stays open
	}
	if endErr := change.End(ctx, r.Table, err == nil); endErr != nil && err == nil {
		err = r.Explain(endErr)
	}
	_ = r.Profiles(ctx) // this store applies it immediately; where that fails, as soon as all others do
	return saved, err
}

// welcome refuses a tenant that is erased, or admits it again.
func (r room) welcome(ctx context.Context, id tenant.ID, readmit bool) error {
	m, err := r.mark(ctx, id, "")
	if err != nil || !m.inForce(r.Earliest()) {
		return err
	}
	if readmit {
		return r.readmit(ctx, id, m, nil)
	}
	return fmt.Errorf("%w: tenant %s", ErrErased, id)
}

// Load returns a tenant's profile. Its error matches tsdb.ErrNotFound where there is none. It costs one read.
func Load(ctx context.Context, store *tsdb.Store, id tenant.ID) (_ Profile, err error) {
	ctx, op := inside.Watch(store).Begin(ctx, telemetry.TenantProfile, telemetry.Subject{Tenant: id.String()})
	defer func() { op.End(err) }()
	r, err := enterFor(ctx, store, id)
	if err != nil {
		return Profile{}, err
	}
	doc, p, err := r.profile(ctx, id)
	if err == nil && !doc.Exists() {
		err = fmt.Errorf("%w: profile of tenant %s", tsdb.ErrNotFound, id)
	}
	return p, err
}

func (r room) profile(ctx context.Context, id tenant.ID) (catalog.Document, Profile, error) {
	doc, err := catalog.LoadDocument(ctx, r.Table, rowkey.ProfileRows+id.String())
	if err != nil || !doc.Exists() {
		return doc, Profile{}, r.Explain(err)
	}
	p, err := readProfile(id, doc)
	return doc, p, err
}

func readProfile(id tenant.ID, doc catalog.Document) (p Profile, err error) {
	if err := json.Unmarshal(doc.JSON, &p); err != nil {
		return p, fmt.Errorf("tenants: the profile of %s does not decode: %w", id, err)
	}
	if string(p.Limits) == "null" {
		p.Limits = nil
	}
	p.Version = doc.Version()
	return p, nil
}

// full is the profile with each of its members, so that those that were set before are overwritten.
func (p Profile) full() any {
	return struct {
		Name      string            `json:"name"`
		Retention string            `json:"retention"`
		Classes   map[string]string `json:"classes"`
		Limits    json.RawMessage   `json:"limits"`
		View      bool              `json:"view"`
	}{p.Name, p.Retention, p.Classes, p.Limits, p.View}
}

func (p Profile) same(o Profile) bool {
	return p.Name == o.Name && p.Retention == o.Retention && maps.Equal(p.Classes, o.Classes) && p.View == o.View && sameJSON(p.Limits, o.Limits)
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

const (
	maxName    = 256
	maxLimits  = 64 << 10
	maxClasses = 1000
)

func (p Profile) check() error {
	if err := errors.Join(checkText("Name", p.Name, maxName), checkText("Retention", p.Retention, maxName)); err != nil {
		return err
	}
	switch {
	case len(p.Classes) > maxClasses:
		return invalid.New(ErrInvalid, "Classes", strconv.Itoa(len(p.Classes))+" datasets", "at most "+strconv.Itoa(maxClasses))
	case len(p.Limits) > maxLimits:
		return invalid.New(ErrInvalid, "Limits", strconv.Itoa(len(p.Limits))+" bytes", "at most 64 KiB")
	}
	if p.Limits == nil || string(p.Limits) == "null" {
		return nil
	}
	if err := new(limit.Limits).UnmarshalJSON(p.Limits); err != nil {
		return fmt.Errorf("%w: Limits: %w", ErrInvalid, err)
	}
	return nil
}
