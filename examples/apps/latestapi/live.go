package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

const (
	livePath = "/v1/{dataset}/live"
	asEvents = "text/event-stream"
	// heartbeat is the longest silence of a stream: proxies close connections that are silent for long.
	heartbeat = 15 * time.Second
	// sendTime is how long a client may take for one event before it is disconnected.
	sendTime = 30 * time.Second
	// longestStream ends a stream; the client then connects again, perhaps to another replica.
	longestStream = 24 * time.Hour
)

// errHeartbeat ends a wait for points.
var errHeartbeat = errors.New("nothing new")

// stream is a follower without the type of its values.
type stream interface {
	// next visits new points until ctx ends or visit returns an error. The position is the one behind the point.
	next(ctx context.Context, visit func(p point, position string, err error) error) error
	position() string
	close()
}

// live answers GET: new points of an entity or of a group, as server-sent events. A client that reconnects sends the ID
// of the last event, and the stream continues behind it. The stream ends when the client leaves, the server stops, or
// timeout has passed.
func (s *server) live(w http.ResponseWriter, r request) error {
	parts := r.params.key(r.dataset.fields())
	since := r.params.option("since")
	longest := r.params.timeout(longestStream)
	if err := r.params.check(); err != nil {
		return err
	}
	if _, err := accepted(r.Request, asEvents); err != nil {
		return err
	}
	opts := tsdb.FollowOptions{After: r.Header.Get("Last-Event-ID"), Since: since}
	if opts.After != "" {
		opts.Since = time.Time{} // a browser reconnects with the address of the first request
	}
	from, err := r.dataset.follow(r.Context(), r.tenant, parts, opts)
	if err != nil {
		return err
	}
	defer from.close()
	w.Header().Set("Content-Type", asEvents)
	w.Header().Set("X-Accel-Buffering", "no") // proxies pass each event on at once
	if r.Method == http.MethodHead {
		return nil
	}
	bounded, end := context.WithTimeout(r.Context(), longest)
	defer end()
	ctx, cancel := context.WithCancelCause(bounded)
	defer cancel(nil)
	defer context.AfterFunc(s.streams, func() { cancel(context.Cause(s.streams)) })()
	out := events{w: w, control: http.NewResponseController(w)}
	if err := out.control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) { // it would end the request
		return err
	}
	err = out.send(fmt.Sprintf("retry: 2000\nid: %s\n\n", from.position()))
	for err == nil {
		wait, stop := context.WithTimeoutCause(ctx, heartbeat, errHeartbeat)
		err = from.next(wait, func(p point, position string, err error) error { return s.event(&out, r.Request, p, position, err) })
		stop()
		if errors.Is(err, errHeartbeat) {
			err = out.send(": still here\n\n")
		}
	}
	if ctx.Err() == nil && !errors.Is(err, errGone) {
		if p := s.note(r.Request, err); p != nil {
			_ = out.data("problem", "", p)
		}
	}
	return nil
}

// event sends a point, or what stands in its place.
func (s *server) event(out *events, r *http.Request, p point, position string, err error) error {
	if missed, ok := errors.AsType[*tsdb.MissedError](err); ok {
		return out.data("missed", position, struct {
			Points int          `json:"points"`
			Oldest instant.Time `json:"oldest"`
			Newest instant.Time `json:"newest"`
		}{missed.Points, instant.Time{Time: missed.Oldest}, instant.Time{Time: missed.Newest}})
	}
	if err := bad(&p, err); err != nil {
		return err
	}
	return out.data("", position, p)
}

// errGone says that an event could not be sent.
var errGone = errors.New("the client has gone")

// events writes server-sent events.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	body    bytes.Buffer
}

// data sends an event with a value as JSON.
func (e *events) data(name, id string, value any) error {
	e.body.Reset()
	if name != "" {
		fmt.Fprintf(&e.body, "event: %s\n", name)
	}
	if id != "" {
		fmt.Fprintf(&e.body, "id: %s\n", id)
	}
	e.body.WriteString("data: ")
	out := json.NewEncoder(&e.body)
	out.SetEscapeHTML(false)
	if err := out.Encode(value); err != nil { // on one line, and with its end
		return internal.problem().with("the point cannot be written as JSON")
	}
	e.body.WriteByte('\n')
	return e.send(e.body.String())
}

func (e *events) send(text string) error {
	if err := e.control.SetWriteDeadline(time.Now().Add(sendTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return errGone
	}
	if _, err := e.w.Write([]byte(text)); err != nil {
		return errGone
	}
	if err := e.control.Flush(); err != nil {
		return errGone
	}
	return nil
}

// streamed passes only requests of a known tenant for a known dataset to a handler. They hold no slot: the store bounds
// the number of followers.
func (s *server) streamed(h handler) http.Handler {
	return s.known(func(w http.ResponseWriter, r request) {
		if s.stopping.Load() {
			s.fail(w, r.Request, unavailable.problem())
			return
		}
		if err := h(w, r); err != nil {
			s.fail(w, r.Request, err)
		}
	})
}

// follow follows an entity if there are parts for all fields, and else a group.
func (s served[T]) follow(ctx context.Context, id tenant.ID, parts []string, opts tsdb.FollowOptions) (stream, error) {
	repo := s.schema.For(s.store, id)
	if len(parts) == len(s.names) {
		e, err := s.entity(parts)
		if err != nil {
			return nil, err
		}
		f, err := repo.Follow(ctx, e, opts)
		return followed[T]{s, f}, err
	}
	p := tsdb.AllEntities()
	if len(parts) > 0 {
		var err error
		if p, err = s.prefix(parts); err != nil {
			return nil, err
		}
	}
	f, err := repo.Under(p).Follow(ctx, opts)
	return followed[T]{s, f}, err
}

type followed[T any] struct {
	served[T]
	f *tsdb.Follower[T]
}

func (f followed[T]) next(ctx context.Context, visit func(p point, position string, err error) error) error {
	for p, err := range f.f.Points(ctx) {
		_, missed := errors.AsType[*tsdb.MissedError](err)
		_, unreadable := errors.AsType[*tsdb.PointError](err)
		if err != nil && !missed && !unreadable && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := visit(f.point(p), f.position(), err); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (f followed[T]) position() string { return f.f.Cursor() }

func (f followed[T]) close() { _ = f.f.Close() }
