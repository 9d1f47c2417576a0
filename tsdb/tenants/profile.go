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

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Profile is an operator's data about a tenant. The zero Profile holds no data.
type Profile struct {
	// Name is the tenant's name for people, up to 256 bytes of UTF-8. It is stored as plain text. Erase deletes it.
	Name string `json:"name,omitempty"`
	// Retention is the retention class in which the tenant's points are written, in every dataset that offers it
	// (tsdb.SchemaOptions.Classes). In other datasets, and if it is empty, points are written in the dataset's
	// default class. Points that are already written stay in their class. The store that writes the profile applies a
	// change immediately, other open stores within two minutes.
	Retention string `json:"retention,omitempty"`
	// Classes are the retention classes for single datasets, by the dataset's name. They override Retention. Nil is
	// none.
	Classes map[string]string `json:"classes,omitempty"`
	// Limits are the tenant's limits, as JSON of limit.Limits: {"points_per_second": 100}. Stores with
	// tsdb.StoreOptions.ProfileLimits apply them, and a change of them within two minutes. A missing limit is
	// the default of the store's table of limits; 0 is no limit. Onboard fails with tsdb.ErrInvalid for other JSON.
	// Nil is none.
	Limits json.RawMessage `json:"limits,omitempty"`
	// View is the operator's note that the tenant has an authorized view: tsdb.Store.EnsureView makes it.
	View bool `json:"view,omitempty"`
	// Version is how often the profile was written, as Load returns it; 0 for a profile that was not read. Onboard
	// with Replace replaces only that version.
	Version uint64 `json:"version,omitempty"`
}

// OnboardOptions configure an onboarding. The zero value is useful.
type OnboardOptions struct {
	// Replace changes a stored profile that differs. Without it, Onboard fails with ErrConflict. If Profile.Version
	// is not 0, Onboard also fails with ErrConflict if the profile was changed after that version was read. Version 0
	// replaces any profile.
	Replace bool
	// Readmit readmits a tenant whose erasure has ended, as the function Readmit does. Without it, an erased tenant
	// is refused.
	Readmit bool
}

// Onboard writes a tenant's profile, and returns the stored profile. If an equal profile is stored, it writes
// nothing. If another profile is stored, the error matches ErrConflict, unless OnboardOptions.Replace is set. For an
// erased tenant the error matches tsdb.ErrErased. Tenants can write points without onboarding: a profile is not a
// permission.
//
// The error matches tsdb.ErrInvalid if no dataset of the catalogue offers Profile.Retention, or if Profile.Classes
// names a dataset that the catalogue does not have or a class that this dataset does not offer. A program that does
// not know a class yet writes in its default class, so deploy the programs before profiles name the class.
//
// Onboard costs two reads, one more of the whole catalogue if the profile names retention classes, and one
// conditional write for a change. A change that other stores must apply costs two more reads and two writes. Onboard
// may be repeated.
func Onboard(ctx context.Context, store *tsdb.Store, id tenant.ID, p Profile, opts OnboardOptions) (_ Profile, err error) {
	ctx, r, end, err := enterFor(ctx, store, telemetry.TenantOnboard, id)
	defer func() { end(err) }()
	if err != nil {
		return Profile{}, err
	}
	if err := p.check(); err != nil {
		return Profile{}, err
	}
	if string(p.Limits) == "null" {
		p.Limits = nil // so it is read again
	}
	if err := r.offered(ctx, p); err != nil {
		return Profile{}, err
	}
	if err := r.welcome(ctx, id, opts.Readmit); err != nil {
		return Profile{}, err
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

// saveProfile stores a profile if the stored one is still doc. It announces changes that other stores must apply.
func (r room) saveProfile(ctx context.Context, id tenant.ID, p Profile, doc catalog.Document, stored Profile) (catalog.Document, error) {
	save := func() (catalog.Document, error) {
		saved, ok, err := catalog.SaveDocument(ctx, r.Whole, rowkey.ProfileRows+id.String(), p.full(), doc, func(mut *bigtable.Mutation) {
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
	change, err := catalog.ProfileChanges.Begin(ctx, r.Whole, id.String())
	if err != nil {
		return doc, r.Explain(err)
	}
	saved, err := save()
	if err != nil && !errors.Is(err, ErrConflict) {
		return doc, err // the profile may still be stored: the change stays announced
	}
	if endErr := change.End(ctx, r.Whole, err == nil); endErr != nil && err == nil {
		err = r.Explain(endErr)
	}
	_ = r.RenewProfiles(ctx) // this store applies it immediately, or after an error as late as all others
	return saved, err
}

// welcome fails for an erased tenant, or readmits it.
func (r room) welcome(ctx context.Context, id tenant.ID, readmit bool) error {
	m, err := r.mark(ctx, id.String(), "")
	inForce := m.rec.inForce(m.doc, r.Time.Earliest())
	switch {
	case err != nil:
		return err
	case readmit && (inForce || m.rec.State == readmitted): // an interrupted call may not have reached the stores
		return r.readmit(ctx, id, m, nil)
	case !inForce:
		return nil
	}
	return fmt.Errorf("%w: tenant %s", tsdb.ErrErased, id)
}

// Load returns a tenant's profile. The error matches tsdb.ErrNotFound if there is none. It costs one read.
func Load(ctx context.Context, store *tsdb.Store, id tenant.ID) (_ Profile, err error) {
	ctx, r, end, err := enterFor(ctx, store, telemetry.TenantProfile, id)
	defer func() { end(err) }()
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
	doc, err := catalog.LoadDocument(ctx, r.Whole, rowkey.ProfileRows+id.String())
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

// full returns the profile with all its members, so that it overwrites every member of an earlier profile.
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
		return invalid.New(tsdb.ErrInvalid, "Classes", strconv.Itoa(len(p.Classes))+" datasets", "at most "+strconv.Itoa(maxClasses))
	case len(p.Limits) > maxLimits:
		return invalid.New(tsdb.ErrInvalid, "Limits", strconv.Itoa(len(p.Limits))+" bytes", "at most 64 KiB")
	}
	if p.Limits == nil || string(p.Limits) == "null" {
		return nil
	}
	if err := new(limit.Limits).UnmarshalJSON(p.Limits); err != nil {
		return fmt.Errorf("%w: Limits: %w", tsdb.ErrInvalid, err)
	}
	return nil
}
