package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/urfave/cli/v3"
)

const keyFlagName = "key-file"

func keyFlag() *cli.StringFlag {
	return &cli.StringFlag{Name: keyFlagName, Usage: "a `file` with at least 32 random bytes or characters, so that a forged export is found; `head -c 32 /dev/urandom | base64`"}
}

// maxKey bounds a key's file.
const maxKey = 4 << 10

// readKey reads the key of an export, without a newline at its end; nil for no file. The file must be its owner's
// alone: a key on the command line would show in the list of processes.
func readKey(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return nil, fmt.Errorf("%s has mode %#o; a key's file must be for its owner alone: chmod 600", name, mode)
	}
	key, err := io.ReadAll(io.LimitReader(f, maxKey+1))
	if err != nil {
		return nil, err
	}
	if len(key) > maxKey {
		return nil, fmt.Errorf("%s holds more than %d bytes, and has to hold a key of at least 32", name, maxKey)
	}
	if line := bytes.TrimSuffix(bytes.TrimSuffix(key, []byte("\n")), []byte("\r")); len(line) >= 32 {
		return line, nil // a line of text
	}
	return key, nil
}
