package tenant

import (
	"context"
	"crypto/x509"
	"encoding/asn1"
	"fmt"
	"slices"
	"strings"
)

// FromCertificate takes the tenant from a name in the caller's certificate. names is CommonName, DNSName, URI, or a
// function that returns all names found. Without a certificate that the server has verified, the error is
// ErrNoCredentials. No name, or two different names, is ErrForbidden. The certificate authorities in the server's
// ClientCAs decide who gets which name.
func FromCertificate(names func(*x509.Certificate) []string) Resolver {
	return resolverFunc(func(_ context.Context, r Request) (ID, error) {
		switch {
		case names == nil:
			return ID{}, fmt.Errorf("%w: nil names of a certificate", errResolver)
		case r.Certificate == nil:
			return ID{}, ErrNoCredentials
		}
		found := slices.Clone(names(r.Certificate))
		slices.Sort(found)
		return one("the certificate's name", slices.Compact(found))
	})
}

var commonName = asn1.ObjectIdentifier{2, 5, 4, 3}

// CommonName returns the common names of a certificate's subject, for FromCertificate.
func CommonName(c *x509.Certificate) []string {
	if c == nil {
		return nil
	}
	var names []string
	for _, attribute := range c.Subject.Names { // Subject.CommonName hides all but the last
		if name, ok := attribute.Value.(string); ok && attribute.Type.Equal(commonName) {
			names = append(names, name)
		}
	}
	return names
}

// DNSName returns, for FromCertificate, the labels directly before a domain in a certificate's DNS names, in lower
// case: "acme" in acme.clients.example.com for the domain clients.example.com. It ignores names with more labels,
// such as a.acme.clients.example.com, and names in other domains.
func DNSName(domain string) func(*x509.Certificate) []string {
	domain = strings.ToLower(strings.Trim(domain, "."))
	return func(c *x509.Certificate) []string {
		if c == nil {
			return nil
		}
		var names []string
		for _, name := range c.DNSNames {
			label, rest, _ := strings.Cut(strings.ToLower(name), ".")
			if domain != "" && rest == domain {
				names = append(names, label)
			}
		}
		return names
	}
}

// URI returns, for FromCertificate, the segments directly after a prefix in a certificate's URIs, unchanged: "acme"
// in spiffe://example.com/tenant/acme/gateway for the prefix spiffe://example.com/tenant/. It appends a slash to the
// prefix if that does not end with one. It ignores URIs with a query or a fragment, and URIs with other prefixes.
func URI(prefix string) func(*x509.Certificate) []string {
	if !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	return func(c *x509.Certificate) []string {
		if c == nil {
			return nil
		}
		var names []string
		for _, u := range c.URIs {
			text := u.String()
			if strings.ContainsAny(text, "?#") {
				continue
			}
			if rest, ok := strings.CutPrefix(text, prefix); ok {
				name, _, _ := strings.Cut(rest, "/")
				names = append(names, name)
			}
		}
		return names
	}
}
