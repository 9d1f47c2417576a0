package tenants

import (
	"context"
	"encoding/json"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Profile is what an operator has noted about a tenant. The zero Profile is a tenant of which nothing is noted.
type Profile struct {
	// Name is how people call the tenant, up to 256 bytes of UTF-8. It is stored as it is, and goes when the tenant is erased.
	Name string `json:"name,omitempty"`
	// Retention is the name of the tenant's retention class, for the program to choose a schema by. The store does not act on it.
	Retention string `json:"retention,omitempty"`
	// Limits are the tenant's limits, a JSON value of up to 64 KiB for whoever enforces them. Nil is none.
	Limits json.RawMessage `json:"limits,omitempty"`
	// View says that the tenant has an authorized view.
	View bool `json:"view,omitempty"`
}

// OnboardOptions are what an onboarding may decide. The zero value is good.
type OnboardOptions struct {
	// Replace changes a profile that differs. Without it the call fails with ErrConflict.
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
// It costs two reads, and one conditional write where something changes. It may be repeated.
func Onboard(ctx context.Context, store *tsdb.Store, id tenant.ID, p Profile, opts OnboardOptions) (Profile, error) {
	panic("to come")
}

// Load returns a tenant's profile. Its error matches tsdb.ErrNotFound where there is none. It costs one read.
func Load(ctx context.Context, store *tsdb.Store, id tenant.ID) (Profile, error) { panic("to come") }
