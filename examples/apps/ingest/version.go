package main

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// version writes answers as a version of InfluxDB does.
type version interface {
	// done answers a request of which everything is stored.
	done(w http.ResponseWriter, rep report)
	// fail answers another one. The report has its refused lines.
	fail(w http.ResponseWriter, status int, message string, rep report)
}

// noContent is how all versions of InfluxDB answer a request of which everything is stored.
type noContent struct{}

func (noContent) done(w http.ResponseWriter, _ report) { w.WriteHeader(http.StatusNoContent) }

type version1 struct{ noContent }

func (version1) fail(w http.ResponseWriter, status int, message string, _ report) {
	writeJSON(w, status, map[string]string{"error": message})
}

type version2 struct{ noContent }

func (version2) fail(w http.ResponseWriter, status int, message string, rep report) {
	code := map[int]string{
		http.StatusBadRequest: "invalid", http.StatusUnauthorized: "unauthorized", http.StatusServiceUnavailable: "unavailable",
		http.StatusRequestEntityTooLarge: "request too large", http.StatusTooManyRequests: "too many requests", http.StatusUnsupportedMediaType: "unsupported media type",
	}[status]
	answer := map[string]any{"code": code, "message": message}
	if len(rep.examples) > 0 {
		answer["line"] = rep.examples[0].number
	}
	writeJSON(w, status, answer)
}

type version3 struct{ noContent }

// line3 is a refused line in an answer of version 3.
type line3 struct {
	Number int    `json:"line_number"`
	Error  string `json:"error_message"`
}

func (version3) fail(w http.ResponseWriter, status int, message string, rep report) {
	answer := map[string]any{"error": message}
	if rep.refused > 0 {
		data := make([]line3, len(rep.examples))
		for i, e := range rep.examples {
			data[i] = line3{e.number, e.where + ": " + e.err.Error()}
		}
		message = "partial write of line protocol occurred" // clients know this text
		if more := rep.refused - len(data); more > 0 {
			message += fmt.Sprintf("; %d more lines are refused", more)
		}
		answer = map[string]any{"error": message, "data": data}
	}
	writeJSON(w, status, answer)
}

func writeJSON(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // the client may have gone
}
