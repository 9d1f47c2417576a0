package main

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tenant"
)

// jsonPath begins the paths of messages of JSON. The rest of a path is the topic that the routes match.
const jsonPath = "/json/"

// versionJSON writes answers to messages of JSON.
type versionJSON struct{}

// answerJSON is what is done with the messages of a request.
type answerJSON struct {
	Error        string           `json:"error,omitempty"`
	Stored       int              `json:"stored"`
	Refused      []refusedMessage `json:"refused"`
	RefusedCount int              `json:"refusedCount"`
}

type refusedMessage struct {
	Message int    `json:"message"`
	Reason  string `json:"reason"`
	Error   string `json:"error"`
}

func (versionJSON) done(w http.ResponseWriter, rep report) {
	writeJSON(w, http.StatusOK, answerJSON{Stored: rep.stored, Refused: []refusedMessage{}})
}

func (versionJSON) fail(w http.ResponseWriter, status int, message string, rep report) {
	if rep.refused == 0 {
		writeJSON(w, status, map[string]string{"error": message})
		return
	}
	answer := answerJSON{Stored: rep.stored, RefusedCount: rep.refused}
	for _, e := range rep.examples {
		answer.Refused = append(answer.Refused, refusedMessage{e.number, e.reason, e.err.Error()})
	}
	writeJSON(w, status, answer)
}

// topicOf returns the topic of a path. A level is any text but an empty one, and those by which a proxy would take the
// path for another one.
func topicOf(u *url.URL) (string, error) {
	var levels []string
	for part := range strings.SplitSeq(strings.TrimPrefix(u.EscapedPath(), jsonPath), "/") {
		level, err := url.PathUnescape(part)
		switch {
		case err != nil:
			return "", err
		case level == "":
			return "", errors.New("the path has an empty level")
		case level == ".", level == "..", strings.ContainsAny(level, `/\`):
			return "", fmt.Errorf("the path has the level %.64q, which could be another path", level)
		case !utf8.ValidString(level), strings.ContainsFunc(level, unicode.IsControl):
			return "", errors.New("the path has a control character, or is not valid UTF-8")
		}
		levels = append(levels, level)
	}
	return strings.Join(levels, "/"), nil
}

// postJSON stores the messages of a request, and answers once the outcome of each is known.
func (s *server) postJSON(w http.ResponseWriter, r *http.Request) {
	v := versionJSON{}
	to, consistent, fail := s.placeOf(r)
	if fail != nil {
		s.failJSON(w, fail)
		return
	}
	whose, err := tenant.Bind(r.Context(), to.id)
	if err != nil {
		v.fail(w, http.StatusForbidden, "the request is another tenant's already", report{})
		return
	}
	body, release, fail := s.bodyJSON(w, r, to)
	defer release()
	if fail != nil {
		s.failJSON(w, fail)
		return
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	texts, parts := splitBody(body, kind == "application/x-ndjson" || kind == "application/jsonl", manyMessages)
	if len(texts) > manyMessages {
		v.fail(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the request has more than %d messages; send fewer at once", manyMessages), report{})
		return
	}
	releaseSlot, fail := s.begin(to.id)
	if fail != nil {
		s.failJSON(w, fail)
		return
	}
	defer releaseSlot()
	ctx, cancel := context.WithTimeout(whose, s.limits.Timeout)
	defer cancel()
	rep, err := s.in.messages(ctx, to, texts, parts)
	s.count(&s.messages, rep)
	s.answer(w, v, to.id, rep, err, !consistent || s.readable(ctx, rep, err))
}

// placeOf returns where the messages of a request are stored, and whether its answer waits until they can be read.
func (s *server) placeOf(r *http.Request) (to place, consistent bool, _ *failure) {
	bad := func(status int, err error) (place, bool, *failure) {
		return place{}, false, &failure{status, err.Error(), 0}
	}
	if r.Method != http.MethodPost {
		return bad(http.StatusMethodNotAllowed, errors.New("messages are sent by POST"))
	}
	topic, err := topicOf(r.URL)
	if err != nil {
		return bad(http.StatusBadRequest, err)
	}
	to.route, to.names = s.routes.Match(topic)
	owner, err := s.auth.oneToken(r)
	if err == errNoToken {
		owner, to.signed, err = s.signer(r, to)
	}
	if err != nil {
		return bad(http.StatusUnauthorized, err)
	}
	if to.route == nil {
		return bad(http.StatusNotFound, fmt.Errorf("no route matches the path %.128q after %s", topic, jsonPath))
	}
	if to.route.IsLines() {
		return bad(http.StatusUnsupportedMediaType, errors.New("the route of this path reads line protocol; send that to /api/v2/write"))
	}
	if to.id, err = to.route.Tenant(inbound.Message{Names: to.names}, owner); err != nil {
		return bad(http.StatusForbidden, err)
	}
	if consistent, err = boolean(r.URL.Query(), "consistent", false); err != nil {
		return bad(http.StatusBadRequest, err)
	}
	return to, consistent, nil
}

// signer returns the tenant of a request without a token, and the signatures of which one must match its body. The
// route names the tenant.
func (s *server) signer(r *http.Request, to place) (tenant.ID, signatures, error) {
	if to.route == nil {
		return tenant.ID{}, nil, errNoToken
	}
	id, err := to.route.Tenant(inbound.Message{Names: to.names}, tenant.ID{})
	signed := s.signatures.of(id, r.Header)
	if err != nil || len(signed) == 0 {
		return tenant.ID{}, nil, errNoToken
	}
	return id, signed, nil
}

// bodyJSON reads the whole body of a request, and decompresses it. Always call release, once the body is no longer
// used.
func (s *server) bodyJSON(w http.ResponseWriter, r *http.Request, to place) (_ []byte, release func(), _ *failure) {
	id := to.id
	if len(to.signed) > 0 {
		r.Body = to.signed.body(r)
		id = tenant.ID{} // anybody can send it: it takes none of the tenant's memory
	}
	plain, releasePlain, err := s.body(w, r, id)
	if err != nil {
		return nil, releasePlain, bodyFailure(err)
	}
	body, releaseAll, err := edge.ReadAll(plain, id, s.memory)
	release = func() { releaseAll(); releasePlain() }
	if err != nil {
		return nil, release, bodyFailure(err)
	}
	return body, release, nil
}

// bodyFailure returns the failure of a body that could not be read.
func bodyFailure(err error) *failure {
	switch {
	case errors.Is(err, edge.ErrNoRoom):
		return busy(err.Error())
	case errors.Is(err, errSignature):
		return &failure{http.StatusUnauthorized, err.Error(), 0}
	}
	return &failure{statusOf(err), tooLarge(err, ""), 0}
}

func (s *server) failJSON(w http.ResponseWriter, f *failure) {
	switch {
	case f.retry > 0:
		edge.RetryAfter(w, f.retry)
	case f.status == http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Basic realm="tidemark"`)
	case f.status == http.StatusMethodNotAllowed:
		w.Header().Set("Allow", http.MethodPost)
	}
	versionJSON{}.fail(w, f.status, f.message, report{})
}
