package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// stdio is the name of standard input and output.
const stdio = "-"

func (a *app) backup() *cli.Command {
	return &cli.Command{
		Name: "backup", Usage: "copy the store while programs use it", ArgsUsage: "FOLDER | - | NAME", HideHelpCommand: true,
		Description: "With --dir, the backup is a new FOLDER, which is checked; - writes a stream for an object store. Folders beside each other share\n" +
			"what is equal. On Bigtable, NAME is a backup of the table in its own cluster.\n\n" +
			"  tidectl --dir data backup backups/2026-11-27\n" +
			"  tidectl --dir data backup --manifest last.json - > whole.tar.zst\n" +
			"  tidectl --dir data backup --base last.json --manifest next.json - > changes.tar.zst",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "base", Usage: "leave out of the stream what the backup with this manifest `file` has"},
			&cli.StringFlag{Name: "manifest", Usage: "write the manifest of the stream to this `file`, for --base"},
			&cli.BoolFlag{Name: "no-verify", Usage: "do not read the backup again"},
		}, clusterFlags(true)...),
		Action: func(ctx context.Context, c *cli.Command) error {
			if c.Args().Len() != 1 {
				return usageError{errors.New("backup takes one argument: the new folder, - for a stream, or a name on Bigtable")}
			}
			if a.dir == "" && a.project != "" {
				return a.backupTable(ctx, c)
			}
			if to := c.Args().First(); to != stdio {
				if c.String("base") != "" || c.String("manifest") != "" {
					return usageError{errors.New("--base and --manifest are for a stream; folders share files with those beside them")}
				}
				return a.backupFolder(ctx, c, to)
			}
			return a.backupStream(ctx, c)
		},
	}
}

// backedUp is a backup in JSON.
type backedUp struct {
	tsdb.Backup
	Folder string `json:",omitempty"`
}

func (a *app) backupFolder(ctx context.Context, c *cli.Command, to string) error {
	store, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	b, err := store.Backup(ctx, to)
	if err = errors.Join(err, store.Close()); err != nil {
		return err
	}
	if !c.Bool("no-verify") {
		if _, err := embedded.VerifyBackup(ctx, to); err != nil {
			return err
		}
	}
	return a.printBackup(b, to, c.Bool("no-verify"))
}

func (a *app) printBackup(b tsdb.Backup, folder string, unchecked bool) error {
	return a.print(backedUp{b, folder}, func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "backup\t%s\n", b.ID)
		fmt.Fprintf(w, "of\t%s on %s, %s\n", b.Dir, b.Host, b.Taken.Format(time.RFC3339))
		if b.CopyOf != "" {
			fmt.Fprintf(w, "\twhich is a copy from the backup %s\n", b.CopyOf)
		}
		if folder != "" {
			fmt.Fprintf(w, "in\t%s\n", folder)
		}
		fmt.Fprintf(w, "files\t%d, %s", b.Files, size(b.Bytes))
		if b.Added > 0 {
			fmt.Fprintf(w, ", of which %s are in no earlier backup beside it", size(b.Added))
		}
		fmt.Fprintln(w)
		for _, j := range b.Journals {
			fmt.Fprintf(w, "journal\t%s, with %d undelivered and %d dead letters\n", j.Dir, j.Records, j.DeadLetters)
		}
		if !unchecked {
			fmt.Fprintf(w, "checked\tsums, and a copy opens\n")
		}
	})
}

// backupStream writes a backup to standard output, by way of a folder beside the store's.
func (a *app) backupStream(ctx context.Context, c *cli.Command) (err error) {
	if terminal(a.std.out) {
		return usageError{errors.New("a stream is not for a terminal: redirect it")}
	}
	dir, err := a.folder(false)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(filepath.Clean(dir)), ".backup-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	store, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	to := filepath.Join(temp, "backup")
	_, err = store.Backup(ctx, to)
	if err = errors.Join(err, store.Close()); err != nil {
		return err
	}
	if _, err := embedded.PackBackup(ctx, to, c.String("base"), a.std.out); err != nil {
		return err
	}
	if name := c.String("manifest"); name != "" {
		text, err := os.ReadFile(filepath.Join(to, "BACKUP.json"))
		if err != nil {
			return err
		}
		return writePrivate(name, func(w io.Writer) error {
			_, err := w.Write(text)
			return err
		})
	}
	return nil
}

func (a *app) verify() *cli.Command {
	return &cli.Command{
		Name: "verify", Usage: "check a backup", ArgsUsage: "FOLDER | NAME", HideHelpCommand: true,
		Description: "A folder's files are compared with their sums, and a copy is opened. On Bigtable, the state of the backup NAME is shown.\n\n" +
			"  tidectl verify backups/2026-11-27",
		Flags: clusterFlags(false),
		Action: func(ctx context.Context, c *cli.Command) error {
			if c.Args().Len() != 1 {
				return usageError{errors.New("verify takes one argument: the folder of a backup, or a name on Bigtable")}
			}
			if a.project != "" {
				return a.verifyTable(ctx, c)
			}
			b, err := embedded.VerifyBackup(ctx, c.Args().First())
			if err != nil {
				return err
			}
			return a.printBackup(b, c.Args().First(), false)
		},
	}
}

func (a *app) restore() *cli.Command {
	return &cli.Command{
		Name: "restore", Usage: "make a store from a backup", ArgsUsage: "FOLDER NEW | STREAM… NEW | NAME TABLE", HideHelpCommand: true,
		Description: "NEW is the new folder of the store. Streams are files, or - for standard input: first one of all files, then those of changes, in\n" +
			"their order. Only one copy gets the journals of a backup. On Bigtable, TABLE is a new table.\n\n" +
			"  tidectl restore backups/2026-11-27 copy\n" +
			"  tidectl restore --journals journals whole.tar.zst changes.tar.zst copy",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "journals", Usage: "the new `folder` for the journals; without it they stay in the backup"},
		}, clusterFlags(false)...),
		Action: func(ctx context.Context, c *cli.Command) error {
			n := c.Args().Len()
			if n < 2 {
				return usageError{errors.New("restore takes a backup, and the new folder or table")}
			}
			if a.project != "" {
				return a.restoreTable(ctx, c)
			}
			return a.restoreFolder(ctx, c, c.Args().Slice()[:n-1], c.Args().Get(n-1))
		},
	}
}

func (a *app) restoreFolder(ctx context.Context, c *cli.Command, from []string, dir string) (err error) {
	source := from[0]
	if info, err := os.Stat(source); source == stdio || err == nil && !info.IsDir() {
		temp, err := os.MkdirTemp(filepath.Dir(filepath.Clean(dir)), ".restore-")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
		if source, err = a.unpack(ctx, from, temp); err != nil {
			return err
		}
	} else if len(from) > 1 {
		return usageError{errors.New("restore takes one folder; only streams follow each other")}
	}
	b, err := embedded.RestoreBackup(ctx, source, dir, c.String("journals"))
	if err != nil {
		return err
	}
	if len(b.Journals) > 0 && c.String("journals") == "" {
		a.say("The backup has %d journals, which were not restored: --journals", len(b.Journals))
	}
	return a.print(backedUp{b, dir}, func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "store\t%s\n", dir)
		fmt.Fprintf(w, "a copy of\t%s on %s, %s\n", b.Dir, b.Host, b.Taken.Format(time.RFC3339))
		if to := c.String("journals"); to != "" {
			fmt.Fprintf(w, "journals\t%d in %s\n", len(b.Journals), to)
		}
	})
}

// unpack makes folders of streams, and returns the last one.
func (a *app) unpack(ctx context.Context, from []string, temp string) (last string, err error) {
	for i, name := range from {
		in := a.std.in
		if name != stdio {
			file, err := os.Open(name)
			if err != nil {
				return "", err
			}
			defer file.Close()
			in = file
		}
		to := filepath.Join(temp, strconv.Itoa(i))
		if _, err := embedded.UnpackBackup(ctx, in, last, to); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		last = to
	}
	return last, nil
}
