package engine

import (
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// The engine stores these settings of a table and shows them. It keeps all cells in one tier and records no changes.

// The service's limits, by the comments of its messages in adminpb.
const (
	minColdAge      = 30 * 24 * time.Hour // TieredStorageRule.include_if_older_than
	minChangeStream = 24 * time.Hour      // ChangeStreamConfig.retention_period
	maxChangeStream = 7 * 24 * time.Hour
)

// checkTiers refuses the rules that the service refuses. Nil means one tier.
func checkTiers(c *adminpb.TieredStorageConfig) error {
	if c == nil {
		return nil
	}
	rule, ok := c.GetInfrequentAccess().GetRule().(*adminpb.TieredStorageRule_IncludeIfOlderThan)
	if !ok {
		return invalidf("Field tiered_storage_config has no rule: want infrequent_access.include_if_older_than, or no tiered_storage_config")
	}
	if err := rule.IncludeIfOlderThan.CheckValid(); err != nil || rule.IncludeIfOlderThan.AsDuration() < minColdAge {
		return invalidf("Field include_if_older_than is %v, want at least %v", rule.IncludeIfOlderThan.AsDuration(), minColdAge)
	}
	return nil
}

// checkChangeStream refuses the retention periods that the service refuses. Nil means that there is no change stream.
func checkChangeStream(c *adminpb.ChangeStreamConfig) error {
	if c == nil {
		return nil
	}
	age := c.GetRetentionPeriod()
	if err := age.CheckValid(); err != nil || age.AsDuration() < minChangeStream || age.AsDuration() > maxChangeStream {
		return invalidf("Field retention_period of change_stream_config is %v, want %v to %v", age.AsDuration(), minChangeStream, maxChangeStream)
	}
	return nil
}

// withSettings returns a schema with the settings of a message: those that the paths name, or all for nil.
func (s *schema) withSettings(m *adminpb.Table, paths []string) (*schema, error) {
	s = s.clone()
	if paths == nil {
		paths = []string{"deletion_protection", "tiered_storage_config", "change_stream_config"}
	}
	for _, p := range paths {
		switch p {
		case "deletion_protection":
			s.protected = m.GetDeletionProtection()
		case "tiered_storage_config":
			if err := checkTiers(m.GetTieredStorageConfig()); err != nil {
				return nil, err
			}
			s.tiers = proto.CloneOf(m.GetTieredStorageConfig())
		case "change_stream_config", "change_stream_config.retention_period":
			c := m.GetChangeStreamConfig()
			if c == nil && p != "change_stream_config" {
				return nil, invalidf("Field change_stream_config is missing")
			}
			if err := checkChangeStream(c); err != nil {
				return nil, err
			}
			s.changes = nil
			if c != nil { // in whole microseconds, as in the service
				s.changes = &adminpb.ChangeStreamConfig{RetentionPeriod: durationpb.New(c.RetentionPeriod.AsDuration().Truncate(time.Microsecond))}
			}
		default:
			return nil, unimplementedf("Updating %q is not offered", p)
		}
	}
	return s, nil
}
