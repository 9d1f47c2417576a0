package main

import (
	"bytes"
	"encoding/json"
)

// splitBody returns the messages of a body, and whether they are parts of it: the elements of an array, or the lines if
// the body is NDJSON. It finds them by brackets, commas and quotes only, so a bad message is one of them. A nil message
// stands for the missing end of an array. It stops above most messages.
func splitBody(body []byte, ndjson bool, most int) (messages [][]byte, parts bool) {
	text := bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\ufeff")))
	switch {
	case len(text) == 0:
		return nil, false
	case ndjson || startsWithLine(text):
		return splitLines(text, most), true
	case text[0] == '[' && !isPlainArray(text):
		return splitArray(text[1:], most), true
	}
	return [][]byte{text}, false
}

// startsWithLine reports whether the first of several lines is JSON of its own.
func startsWithLine(text []byte) bool {
	first, _, several := bytes.Cut(text, []byte("\n"))
	return several && json.Valid(first)
}

// isPlainArray reports whether an array has values that are no objects: it is one message.
func isPlainArray(text []byte) bool {
	inside := bytes.TrimLeft(text[1:], " \t\r\n")
	return len(inside) > 0 && inside[0] != '{' && inside[0] != ']' && json.Valid(text)
}

func splitLines(text []byte, most int) (messages [][]byte) {
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if messages = append(messages, line); len(messages) > most {
			break
		}
	}
	return messages
}

// splitArray splits what is behind the bracket that opens an array.
func splitArray(text []byte, most int) (messages [][]byte) {
	for len(messages) <= most {
		n := endOfElement(text)
		element := bytes.TrimSpace(text[:n])
		if n == len(text) { // neither a comma nor a bracket
			if len(element) > 0 {
				messages = append(messages, element)
			}
			return append(messages, nil)
		}
		isLast := text[n] == ']'
		if element == nil {
			element = []byte{}
		}
		if len(element) > 0 || !isLast || len(messages) > 0 { // not in []
			messages = append(messages, element)
		}
		text = text[n+1:]
		if isLast {
			if rest := bytes.TrimSpace(text); len(rest) > 0 {
				messages = append(messages, rest)
			}
			break
		}
	}
	return messages
}

// endOfElement returns the position of the comma or bracket that ends an element of an array, or the length of the
// text.
func endOfElement(text []byte) int {
	depth := 0
	var quoted, escaped bool
	for i, c := range text {
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = c == '\\', c != '"'
		case c == '"':
			quoted = true
		case c == '[' || c == '{':
			depth++
		case depth == 0 && (c == ',' || c == ']'):
			return i
		case c == ']' || c == '}':
			depth = max(0, depth-1)
		}
	}
	return len(text)
}
