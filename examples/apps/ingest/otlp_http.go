package main

import (
	"errors"
	"mime"
	"net/http"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/tidemark-go/tidemark/examples/internal/edge"
)

// The encodings of OTLP over HTTP. A response has that of its request.
const (
	protobufType = "application/x-protobuf"
	jsonType     = "application/json"
)

// exportHTTP is the endpoint /v1/metrics.
func (s *server) exportHTTP(w http.ResponseWriter, r *http.Request) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind != protobufType && kind != jsonType {
		respond(w, jsonType, &failure{http.StatusUnsupportedMediaType, "the Content-Type is neither " + protobufType + " nor " + jsonType, 0})
		return
	}
	id, ok := s.auth.tenant(r)
	if !ok {
		w.Header().Set("WWW-Authenticate", `Bearer realm="tidemark"`)
		respond(w, kind, &failure{http.StatusUnauthorized, "the token is missing or not known", 0})
		return
	}
	plain, release, err := s.body(w, r, id)
	defer release()
	var body []byte
	if err == nil {
		var releaseAll func()
		body, releaseAll, err = edge.ReadAll(plain, id, s.memory)
		defer releaseAll()
	}
	switch {
	case errors.Is(err, edge.ErrNoRoom):
		respond(w, kind, busy(err.Error()))
		return
	case err != nil:
		respond(w, kind, &failure{statusOf(err), tooLarge(err, ""), 0})
		return
	}
	response, fail := s.export(r.Context(), id, body, kind == jsonType)
	if fail != nil {
		respond(w, kind, fail)
		return
	}
	writeMessage(w, kind, http.StatusOK, response)
}

// respond writes a failure.
func respond(w http.ResponseWriter, kind string, f *failure) {
	if f.retry > 0 {
		edge.RetryAfter(w, f.retry)
	}
	out := &status.Status{Code: int32(f.code()), Message: f.message}
	if f.status == http.StatusBadRequest {
		if detail, err := anypb.New(&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Description: f.message}}}); err == nil {
			out.Details = append(out.Details, detail)
		}
	}
	writeMessage(w, kind, f.status, out)
}

func writeMessage(w http.ResponseWriter, kind string, status int, m proto.Message) {
	var body []byte
	var err error
	if kind == jsonType {
		body, err = protojson.Marshal(m)
	} else {
		body, err = proto.Marshal(m)
	}
	if err != nil { // texts that are not UTF-8 are refused before
		http.Error(w, "the response cannot be encoded", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have gone
}
