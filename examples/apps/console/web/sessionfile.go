package web

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
)

// SessionFile keeps sessions over a restart of the program. The zero value keeps none: sessions then end with the
// process.
type SessionFile struct {
	// Name is the file, which belongs to one console. It has digests of the sessions' IDs, so nobody can use a session
	// that it names. Who can write it can make sessions: it is created with mode 0600.
	Name string
	// Tokens is a value that changes when a token is withdrawn, such as a digest of all that are valid. Sessions that
	// the file has of another value are over.
	Tokens string
}

// sessionFile is the file's content.
type sessionFile struct {
	Tokens   string        `json:"tokens"`
	Sessions []keptSession `json:"sessions"`
}

type keptSession struct {
	Digest   string      `json:"digest"` // of the ID
	Tenants  []tenant.ID `json:"tenants,omitempty"`
	Operator bool        `json:"operator,omitempty"`
	Began    time.Time   `json:"began"`
	Expires  time.Time   `json:"expires"`
}

// load returns the sessions of the file. A file that does not exist has none.
func (f SessionFile) load() (map[[sha256.Size]byte]*session, error) {
	if f.Name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(f.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var kept sessionFile
	if err := json.Unmarshal(text, &kept); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", f.Name, err)
	}
	if kept.Tokens != f.Tokens {
		return nil, nil
	}
	all := map[[sha256.Size]byte]*session{}
	for _, one := range kept.Sessions {
		digest, err := hex.DecodeString(one.Digest)
		if err != nil || len(digest) != sha256.Size {
			return nil, fmt.Errorf("%s is damaged: the digest of a session has %d bytes; want %d", f.Name, len(digest), sha256.Size)
		}
		all[[sha256.Size]byte(digest)] = &session{tenants: one.Tenants, operator: one.Operator, began: one.Began, expires: one.Expires}
	}
	return all, nil
}

// save replaces the file. A crash leaves the old or the new one.
func (f SessionFile) save(all map[[sha256.Size]byte]*session) error {
	if f.Name == "" {
		return nil
	}
	kept := sessionFile{Tokens: f.Tokens, Sessions: []keptSession{}}
	for digest, one := range all {
		kept.Sessions = append(kept.Sessions, keptSession{hex.EncodeToString(digest[:]), one.tenants, one.operator, one.began, one.expires})
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(f.Name), filepath.Base(f.Name)+".*.tmp") // with mode 0600
	if err != nil {
		return err
	}
	_, err = next.Write(text)
	if err = errors.Join(err, next.Close()); err == nil {
		err = os.Rename(next.Name(), f.Name)
	}
	if err != nil {
		_ = os.Remove(next.Name())
	}
	return err
}
