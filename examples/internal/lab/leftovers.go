package lab

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/engine"
)

// scratchName is what the names of scratch folders and tables begin with.
const scratchName = "tidemark-lab-"

// removeFolders removes the scratch folders in parent that runs left whose process was killed. It says what it did, a
// sentence for each. The folders of runs that are under way are locked.
func removeFolders(parent string) (said []string) {
	names, _ := filepath.Glob(filepath.Join(parent, scratchName+"*")) // the pattern is well-formed
	for _, name := range names {
		switch err := engine.Remove(name); {
		case err == nil:
			said = append(said, fmt.Sprintf("removed the folder %s, which a run left that was killed", name))
		case errors.Is(err, engine.ErrLocked), errors.Is(err, engine.ErrForeign), errors.Is(err, os.ErrNotExist):
		default:
			said = append(said, fmt.Sprintf("the folder %s, which a run left that was killed, cannot be removed: %v", name, err))
		}
	}
	return said
}

// The name of a scratch table says until when its run may use it, in UTC.
const tableTime = "20060102t150405"

// clockSkew is by how much the clocks of two machines that use one instance may differ.
const clockSkew = time.Hour

// scratchTable returns the name of a table that no other program has, for a run that takes at most that long.
func scratchTable(now time.Time, most time.Duration) string {
	until := now.Add(most + 2*removeTimeout).UTC().Format(tableTime)
	return scratchName + until + "-" + strings.ToLower(rand.Text()[:12])
}

// removeTables removes the scratch tables of an instance whose time is over, which runs left that were killed, and
// names those that may be of a run under way.
func (b *backend) removeTables(ctx context.Context, now time.Time) (said []string) {
	tables, err := b.admin.Tables(ctx)
	if err != nil {
		return []string{fmt.Sprintf("the tables that earlier runs may have left could not be listed: %v", err)}
	}
	slices.Sort(tables)
	for _, table := range tables {
		rest, ok := strings.CutPrefix(table, scratchName)
		if !ok {
			continue
		}
		text, _, _ := strings.Cut(rest, "-")
		until, err := time.Parse(tableTime, text)
		switch {
		case err != nil:
			said = append(said, fmt.Sprintf("the table %s has the name of a scratch table, but no time; remove it if no run uses it", table))
		case until.Add(clockSkew).After(now):
			said = append(said, fmt.Sprintf("the table %s is of a run that is under way or was killed; a run after %s removes it", table, until.Add(clockSkew).Format(time.RFC3339)))
		default:
			if err := b.admin.DeleteTable(ctx, table); err != nil && status.Code(err) != codes.NotFound { // which another run removed
				said = append(said, fmt.Sprintf("the table %s, which a run left that was killed, cannot be removed: %v", table, err))
				continue
			}
			said = append(said, fmt.Sprintf("removed the table %s, which a run left that was killed", table))
		}
	}
	return said
}

// removeTimeout bounds the removal of a scratch table, also after the run was cancelled.
const removeTimeout = time.Minute

// remove deletes the scratch table. It works after ctx has ended.
func (b *backend) remove(ctx context.Context, table string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	if err := b.admin.DeleteTable(ctx, table); err != nil && status.Code(err) != codes.NotFound { // it was not made yet
		return fmt.Errorf("remove the scratch table %s, which still exists: %w", table, err)
	}
	return nil
}
