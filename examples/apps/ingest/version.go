package main

import (
	"encoding/json"
	"net/http"
)

// version writes errors as a version of InfluxDB does.
type version interface {
	fail(w http.ResponseWriter, status int, message string, line int)
}

type version1 struct{}

func (version1) fail(w http.ResponseWriter, status int, message string, _ int) {
	writeJSON(w, status, map[string]string{"error": message})
}

type version2 struct{}

func (version2) fail(w http.ResponseWriter, status int, message string, line int) {
	code := map[int]string{
		http.StatusBadRequest: "invalid", http.StatusUnauthorized: "unauthorized", http.StatusServiceUnavailable: "unavailable",
		http.StatusRequestEntityTooLarge: "request too large", http.StatusTooManyRequests: "too many requests", http.StatusUnsupportedMediaType: "unsupported media type",
	}[status]
	answer := map[string]any{"code": code, "message": message}
	if line > 0 {
		answer["line"] = line
	}
	writeJSON(w, status, answer)
}

func writeJSON(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // the client may have gone
}
