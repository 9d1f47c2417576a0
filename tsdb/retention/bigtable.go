package retention

import (
	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/gcrule"
)

// ToBigtable returns a policy as a type of the Cloud Bigtable client, in normal form: one rule, or a union of rules.
// Each rule is an age, a number of versions, or the intersection of the two.
//
// Call gc.Policy.Validate first. For a policy that it rejects, the result is [bigtable.NoGcPolicy], which removes
// nothing.
func ToBigtable(p gc.Policy) bigtable.GCPolicy { return gcrule.To(p) }

// FromBigtable converts a policy of the Cloud Bigtable client, such as the FullGCPolicy that
// [bigtable.AdminClient.TableInfo] reports for a family. Nil is gc.Never, as it is for the client.
//
// It fails for a policy that no constructor of package gc accepts, such as an age of zero, which
// the client reports for an age below one second. The client truncates other ages to whole seconds, and drops empty
// rules inside a union or an intersection, before this package sees the policy. Tables made by this module have
// neither.
func FromBigtable(policy bigtable.GCPolicy) (gc.Policy, error) { return gcrule.From(policy) }
