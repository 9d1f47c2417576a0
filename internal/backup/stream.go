package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"github.com/tidemark-go/tidemark/internal/private"
)

// maxWindow bounds the memory that a stream makes its reader take.
const maxWindow = 8 << 20

// Pack writes a backup as a stream: a tar archive, compressed by zstd. Files that the earlier backup has are left out;
// nil leaves out none.
func Pack(ctx context.Context, from string, earlier *Manifest, w io.Writer) (m *Manifest, err error) {
	if m, err = Read(from); err != nil {
		return nil, err
	}
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, err
	}
	out := tar.NewWriter(z)
	text, err := m.encode()
	if err == nil {
		err = addEntry(ctx, out, File{Name: manifestName, Bytes: int64(len(text))}, m, bytes.NewReader(text))
	}
	for _, f := range m.Files {
		if err == nil && !earlier.has(f) {
			err = m.pack(ctx, out, from, f)
		}
	}
	if err != nil { // without its end, nobody takes the stream for a whole one
		return nil, err
	}
	return m, errors.Join(out.Close(), z.Close())
}

// has reports whether a backup has a file with the same contents by the same name.
func (m *Manifest) has(f File) bool {
	if m == nil {
		return false
	}
	other, ok := m.find(f.Name)
	return ok && other == f
}

// pack writes a file, and checks its sum.
func (m *Manifest) pack(ctx context.Context, out *tar.Writer, from string, f File) error {
	file, err := os.Open(filepath.Join(from, filepath.FromSlash(f.Name)))
	if err != nil {
		return err
	}
	defer file.Close()
	hash := sha256.New()
	if err := addEntry(ctx, out, f, m, io.TeeReader(file, hash)); err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	return f.expect(File{Bytes: f.Bytes, Sum: hex.EncodeToString(hash.Sum(nil))}, nil)
}

func addEntry(ctx context.Context, out *tar.Writer, f File, m *Manifest, r io.Reader) error {
	err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.Name, Size: f.Bytes, Mode: int64(private.FileMode), ModTime: m.Taken, Format: tar.FormatPAX})
	if err == nil {
		_, err = io.Copy(out, reader{ctx, r})
	}
	return err
}

// Unpack makes the backup dir from a stream. earlier is a backup that has the files that the stream leaves out; empty
// for a stream of all.
func Unpack(ctx context.Context, r io.Reader, earlier, dir string) (m *Manifest, err error) {
	z, err := zstd.NewReader(reader{ctx, r}, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	err = fill(dir, func(temp string) error {
		in := tar.NewReader(z)
		if m, err = firstEntry(in); err != nil {
			return err
		}
		if err := m.unpack(ctx, in, temp); err != nil {
			return err
		}
		if err := m.complete(ctx, earlier, temp); err != nil {
			return err
		}
		return m.write(filepath.Join(temp, manifestName))
	})
	return m, err
}

func firstEntry(in *tar.Reader) (*Manifest, error) {
	head, err := in.Next()
	if err != nil {
		return nil, fmt.Errorf("not a stream of a backup: %w", err)
	}
	if head.Name != manifestName {
		return nil, fmt.Errorf("not a stream of a backup: it begins with %q, want %s", head.Name, manifestName)
	}
	return parseManifest(in)
}

// unpack writes the files of a stream.
func (m *Manifest) unpack(ctx context.Context, in *tar.Reader, to string) error {
	for {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return damaged("the stream ends early: %v", err)
		}
		f, ok := m.find(head.Name)
		if !ok || head.Typeflag != tar.TypeReg || head.Size != f.Bytes {
			return damaged("the stream has %q with %d bytes, which its manifest does not list", head.Name, head.Size)
		}
		if err := f.expect(writeFile(filepath.Join(to, filepath.FromSlash(f.Name)), reader{ctx, in})); err != nil {
			return err
		}
	}
}

// complete adds the files that the stream left out.
func (m *Manifest) complete(ctx context.Context, earlier, to string) error {
	for _, f := range m.Files {
		name := filepath.FromSlash(f.Name)
		if _, err := os.Lstat(filepath.Join(to, name)); err == nil {
			continue
		}
		if earlier == "" {
			return fmt.Errorf("the stream leaves out %s: give the earlier backup that it was made against", f.Name)
		}
		at := filepath.Join(earlier, name)
		err := f.expect(linkOrCopy(ctx, at, filepath.Join(to, name)))
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("the earlier backup %s has no %s: %w", earlier, f.Name, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
