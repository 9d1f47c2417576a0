package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/tenant"
)

// signatures are what webhooks without a token sign their bodies with.
type signatures []signature

type signature struct {
	tenant tenant.ID
	header string
	secret []byte
}

// readSignatures reads a file with lines TENANT HEADER SECRET. Its errors name the line, and never show a word of it.
func readSignatures(name string) (ss signatures, err error) {
	err = edge.Lines(name, func(text string) error {
		words := strings.Fields(text)
		if len(words) != 3 {
			return errors.New("want TENANT HEADER SECRET")
		}
		id, err := tenant.Parse(words[0])
		if err != nil {
			return errors.New("the first word is not the name of a tenant; want TENANT HEADER SECRET")
		}
		header := http.CanonicalHeaderKey(words[1])
		switch {
		case strings.Trim(header, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-") != "":
			return errors.New("the second word is not the name of a header; want TENANT HEADER SECRET")
		case header == "Authorization" || header == tokenHeader:
			return errors.New("the header is that of a token; want the one with the signature")
		}
		ss = append(ss, signature{id, header, []byte(words[2])})
		return nil
	})
	if err == nil && len(ss) == 0 {
		err = errors.New("no line has a signature; want TENANT HEADER SECRET")
	}
	return ss, err
}

// of returns the signatures of a tenant whose header a request has.
func (ss signatures) of(id tenant.ID, h http.Header) (of signatures) {
	for _, s := range ss {
		if s.tenant == id && len(h.Values(s.header)) > 0 {
			of = append(of, s)
		}
	}
	return of
}

var errSignature = errors.New("the signature does not match")

// signedBody is a body that ends with errSignature, and not with io.EOF, if no signature of it matches.
type signedBody struct {
	io.ReadCloser
	sums []hash.Hash
	sent [][]byte // with each sum; nil if the header has no signature
}

// body returns the body of a request, to be read before it is decompressed. A header that comes twice matches nothing:
// a proxy might have checked the other one.
func (ss signatures) body(r *http.Request) io.ReadCloser {
	b := &signedBody{ReadCloser: r.Body}
	for _, s := range ss {
		b.sums = append(b.sums, hmac.New(sha256.New, s.secret))
		var sent []byte
		if values := r.Header.Values(s.header); len(values) == 1 {
			sent = decodeSignature(values[0])
		}
		b.sent = append(b.sent, sent)
	}
	return b
}

// decodeSignature returns the bytes of a signature in hex or base64, or nil.
func decodeSignature(text string) []byte {
	text = strings.TrimPrefix(text, "sha256=")
	if sum, err := hex.DecodeString(text); err == nil {
		return sum
	}
	sum, _ := base64.StdEncoding.DecodeString(text)
	return sum
}

func (b *signedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	for _, sum := range b.sums {
		sum.Write(p[:n])
	}
	if err == io.EOF && !b.matches() {
		err = errSignature
	}
	return n, err
}

func (b *signedBody) matches() bool {
	var matched []bool
	for i, sum := range b.sums {
		matched = append(matched, hmac.Equal(sum.Sum(nil), b.sent[i]))
	}
	return slices.Contains(matched, true)
}
