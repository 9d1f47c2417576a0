package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
)

const (
	// sessionTime is how long a session lasts. Then the user gives the token again.
	sessionTime = 12 * time.Hour
	// maxSessions is how many sessions there are in memory, and maxOfTenant how many of one tenant. One more ends the
	// oldest.
	maxSessions = 10_000
	maxOfTenant = 1_000
	// maxTenants is how many tokens a user can give in one session.
	maxTenants = 16
)

// errSessionOver ends the streams of a session.
var errSessionOver = errors.New("the session is over")

// session is a user who has given at least one token.
type session struct {
	tenants  []tenant.ID
	operator bool // may see all tenants, and what concerns all
	began    time.Time
	expires  time.Time
	ctx      context.Context // ends with the session
	end      context.CancelCauseFunc
}

// may reports whether the user has given a token of a tenant.
func (s *session) may(id tenant.ID) bool {
	return s != nil && (s.operator || s.has(id))
}

// has reports whether the user has given a token of a tenant or, for no tenant, the operator's.
func (s *session) has(id tenant.ID) bool {
	return slices.Contains(s.tenants, id) || id.IsZero() && s.operator
}

// sessions are the sessions in memory, by the digests of their IDs: comparing an ID takes the same time whether or not
// it is known.
type sessions struct {
	ctx  context.Context
	file SessionFile // keeps them over a restart; the zero value does not

	mu   sync.Mutex
	byID map[[sha256.Size]byte]*session
}

// newSessions returns the sessions of a file that are not over. With an error, there are none.
func newSessions(ctx context.Context, file SessionFile, now time.Time) (*sessions, error) {
	s := &sessions{ctx: ctx, file: file, byID: map[[sha256.Size]byte]*session{}}
	kept, err := file.load()
	for key, one := range kept {
		if now.Before(one.expires) && one.expires.Sub(now) <= sessionTime && len(s.byID) < maxSessions {
			s.add(key, one)
		}
	}
	return s, err
}

// add adds a session, which ends by itself when its time is over.
func (s *sessions) add(key [sha256.Size]byte, one *session) {
	var ended context.CancelFunc
	one.ctx, one.end = context.WithCancelCause(s.ctx)
	one.ctx, ended = context.WithDeadlineCause(one.ctx, one.expires, errSessionOver)
	context.AfterFunc(one.ctx, ended)
	s.byID[key] = one
}

// begin returns the ID of a new session. It has the tenants of the session before it, which ends, and one more. No
// tenant stands for the operator. With an error of the file the session works, and ends with the process.
func (s *sessions) begin(before string, id tenant.ID, now time.Time) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := &session{tenants: []tenant.ID{id}, began: now, expires: now.Add(sessionTime)}
	if id.IsZero() {
		one.tenants, one.operator = nil, true
	}
	if old := s.byID[digest(before)]; old != nil && now.Before(old.expires) {
		if !old.has(id) && len(old.tenants) >= maxTenants {
			return "", refused("the session", "of 16 tenants", "at most 16: log out first")
		}
		others := slices.DeleteFunc(slices.Clone(old.tenants), func(other tenant.ID) bool { return other == id })
		one.tenants, one.operator = append(one.tenants, others...), one.operator || old.operator
		s.drop(digest(before))
	}
	s.makeRoom(id, now)
	text := rand.Text() // 128 bits
	s.add(digest(text), one)
	return text, s.file.save(s.byID)
}

// makeRoom drops the sessions that are over, and the oldest ones of a tenant that has too many, or of all.
func (s *sessions) makeRoom(id tenant.ID, now time.Time) {
	ofTenant := 0
	for key, one := range s.byID {
		if !now.Before(one.expires) {
			s.drop(key)
		} else if one.has(id) {
			ofTenant++
		}
	}
	if ofTenant >= maxOfTenant {
		s.dropOldest(func(one *session) bool { return one.has(id) })
	}
	if len(s.byID) >= maxSessions {
		s.dropOldest(func(*session) bool { return true })
	}
}

func (s *sessions) dropOldest(of func(*session) bool) {
	var oldest [sha256.Size]byte
	var found *session
	for key, one := range s.byID {
		if of(one) && (found == nil || one.began.Before(found.began)) {
			oldest, found = key, one
		}
	}
	if found != nil {
		s.drop(oldest)
	}
}

func (s *sessions) drop(key [sha256.Size]byte) {
	if one := s.byID[key]; one != nil {
		one.end(errSessionOver)
		delete(s.byID, key)
	}
}

// find returns the session of an ID, or nil.
func (s *sessions) find(id string, now time.Time) *session {
	if id == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.byID[digest(id)]; one != nil && now.Before(one.expires) {
		return one
	}
	return nil
}

// end ends a session and its streams.
func (s *sessions) end(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID[digest(id)] == nil {
		return nil
	}
	s.drop(digest(id))
	return s.file.save(s.byID)
}

func digest(id string) [sha256.Size]byte { return sha256.Sum256([]byte(id)) }
