package crash_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tidemark-go/tidemark/tsdb/transfer"
)

// exportFile returns the name of an export's file.
func exportFile(dir, name string) string { return filepath.Join(dir, "new", "exports", name) }

// export exports the tenant to a file, and returns when the file is durable.
func export(name string) step {
	return step{"export", []effect{{"export " + name, "complete"}}, func(ctx context.Context, w *world) (err error) {
		folder := filepath.Dir(exportFile(w.dir, name))
		if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		file, err := os.Create(exportFile(w.dir, name))
		if err != nil {
			return err
		}
		_, err = transfer.Export(ctx, w.store, acme, file, transfer.ExportOptions{})
		if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
			return err
		}
		return errors.Join(syncFolder(folder), syncFolder(filepath.Dir(folder)))
	}}
}

func syncFolder(name string) error {
	folder, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// checkExports checks that exports that were acknowledged are whole, and continues the others to their ends.
func (l *ledger) checkExports(f *finding, w *world) {
	for name, acknowledged := range l.exports {
		if err := continueExport(f.ctx, w, name, acknowledged); err != nil {
			f.say("the export %s, acknowledged %v: %v", name, acknowledged, err)
		}
	}
}

func continueExport(ctx context.Context, w *world, name string, acknowledged bool) error {
	file, err := os.OpenFile(exportFile(w.dir, name), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) && !acknowledged {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	at, complete, err := transfer.Recover(ctx, file, nil)
	_, lost := errors.AsType[*transfer.LineError](err)
	switch {
	case acknowledged && (err != nil || !complete):
		return fmt.Errorf("it is complete: %v, %w", complete, err)
	case lost:
		return nil // a loss of power took what is in its middle, or its beginning
	case err != nil:
		return err
	case !complete:
		if err := file.Truncate(at.Offset); err != nil {
			return err
		}
		if _, err := file.Seek(0, io.SeekEnd); err != nil {
			return err
		}
		if _, err := transfer.Export(ctx, w.store, acme, file, transfer.ExportOptions{Continue: at}); err != nil {
			return fmt.Errorf("it cannot continue at %+v: %w", at, err)
		}
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err = transfer.Check(ctx, file, nil)
	return err
}
