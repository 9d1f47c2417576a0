package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/proto"
)

// maxGCRule is the largest encoded GC rule, in bytes. It also bounds the nesting of rules.
const maxGCRule = 500

// checkGCRule refuses the rules that the service refuses. A nil rule, and one that is empty at the top, keeps
// everything.
func checkGCRule(rule *adminpb.GcRule) error {
	if rule.GetRule() == nil && len(rule.ProtoReflect().GetUnknown()) == 0 {
		return nil
	}
	if n := proto.Size(rule); n > maxGCRule {
		return fmt.Errorf("GC rule has %d bytes, want at most %d", n, maxGCRule)
	}
	return checkNestedRule(rule)
}

func checkNestedRule(rule *adminpb.GcRule) error {
	var nested []*adminpb.GcRule
	switch r := rule.GetRule().(type) {
	case *adminpb.GcRule_MaxAge:
		if err := r.MaxAge.CheckValid(); err != nil || r.MaxAge.AsDuration() < time.Millisecond {
			return errors.New("GC rule: max_age must be at least a millisecond")
		}
		return nil
	case *adminpb.GcRule_MaxNumVersions:
		if r.MaxNumVersions < 1 {
			return fmt.Errorf("GC rule: max_num_versions is %d, want at least 1", r.MaxNumVersions)
		}
		return nil
	case *adminpb.GcRule_Union_:
		nested = r.Union.GetRules()
	case *adminpb.GcRule_Intersection_:
		nested = r.Intersection.GetRules()
	default:
		return errors.New("GC rule: a rule is unknown, or a nested rule is not set")
	}
	if len(nested) == 0 {
		return errors.New("GC rule: a union or intersection has no rules")
	}
	for _, n := range nested {
		if err := checkNestedRule(n); err != nil {
			return err
		}
	}
	return nil
}

// expired reports whether a rule lets the collector remove a cell. newer is the number of newer cells in its column;
// now is in microseconds.
func expired(rule *adminpb.GcRule, timestamp int64, newer int, now int64) bool {
	switch r := rule.GetRule().(type) {
	case *adminpb.GcRule_MaxAge:
		return timestamp < now-r.MaxAge.AsDuration().Microseconds()
	case *adminpb.GcRule_MaxNumVersions:
		return newer >= int(r.MaxNumVersions)
	case *adminpb.GcRule_Union_:
		return slices.ContainsFunc(r.Union.GetRules(), func(n *adminpb.GcRule) bool { return expired(n, timestamp, newer, now) })
	case *adminpb.GcRule_Intersection_:
		keeps := func(n *adminpb.GcRule) bool { return !expired(n, timestamp, newer, now) }
		return len(r.Intersection.GetRules()) > 0 && !slices.ContainsFunc(r.Intersection.GetRules(), keeps)
	}
	return false
}
