package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/tenant"
)

// maxLogin is the largest number of bytes of the login form.
const maxLogin = 8 << 10

// secure reports whether the browser reaches the console by HTTPS. The header of a proxy can only make cookies
// stricter.
func (s *Console) secure(r *http.Request) bool {
	return s.Secure || r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}

// cookieName returns the name of the session's cookie. Browsers let no other host, and no page by plain HTTP, set one
// that begins with __Host-. It has the port, because browsers share cookies between all ports of a host, and several
// programs may run there.
func (s *Console) cookieName(r *http.Request) string {
	name := "tidemark"
	if s.secure(r) {
		name = "__Host-tidemark"
	}
	if _, port, err := net.SplitHostPort(r.Host); err == nil && port != "" {
		name += "-" + port
	}
	return name
}

func (s *Console) cookie(r *http.Request, id string, age time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: s.cookieName(r), Value: id, Path: "/", MaxAge: int(age.Seconds()),
		HttpOnly: true, Secure: s.secure(r), SameSite: http.SameSiteStrictMode,
	}
}

// sessionOf returns the session of a request, or nil.
func (s *Console) sessionOf(r *http.Request) *session {
	c, err := r.Cookie(s.cookieName(r))
	if err != nil {
		return nil
	}
	return s.sessions.find(c.Value, time.Now())
}

// login turns a token into a session. A user who has one already adds a tenant to it.
func (s *Console) login(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	r.Body = http.MaxBytesReader(w, r.Body, maxLogin)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "The form is damaged or longer than 8 KB.", http.StatusBadRequest)
		return
	}
	again := func(why string) {
		query := url.Values{"why": {why}}
		if next := r.PostForm.Get("next"); local(next) {
			query.Set("next", next)
		}
		http.Redirect(w, r, "/login?"+query.Encode(), http.StatusSeeOther)
	}
	if wait := s.attempts.may(r.RemoteAddr, now); wait > 0 {
		edge.RetryAfter(w, wait)
		again("often")
		return
	}
	token := strings.TrimSpace(r.PostForm.Get("token"))
	id, ok := s.Tenant(token)
	if !ok {
		if s.Operator == nil || !s.Operator(token) {
			s.attempts.wrong(r.RemoteAddr)
			again("token")
			return
		}
		id = tenant.ID{} // the operator's session is that of no tenant
	}
	before := ""
	if c, err := r.Cookie(s.cookieName(r)); err == nil {
		before = c.Value
	}
	text, err := s.sessions.begin(before, id, now)
	if text == "" {
		again("full")
		return
	}
	s.logUnsaved(err)
	http.SetCookie(w, s.cookie(r, text, sessionTime))
	next := r.PostForm.Get("next")
	if !local(next) {
		next = "/fleet"
		if ok {
			next += "?" + url.Values{"tenant": {id.String()}}.Encode()
		}
	}
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// logUnsaved logs why the sessions' file could not be written. The sessions of this process are not affected.
func (s *Console) logUnsaved(err error) {
	if err != nil {
		s.Log.Warn("sessions end with this process, because their file cannot be written", "error", err)
	}
}

// local reports whether an address is that of a page of the console, so that a login never leads elsewhere.
func local(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "" && u.Host == "" && u.User == nil && u.Fragment == "" && slices.Contains(pages, u.Path) &&
		strings.HasPrefix(address, u.Path)
}

// logout ends the session.
func (s *Console) logout(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(s.cookieName(r)); err == nil {
		s.logUnsaved(s.sessions.end(c.Value))
	}
	http.SetCookie(w, s.cookie(r, "", -time.Second))
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// session answers with what the user may see: no tenants without a session, which is not an error.
func (s *Console) session(w http.ResponseWriter, r *http.Request) {
	out := struct {
		Tenants  []tenant.ID `json:"tenants"`
		Operator bool        `json:"operator,omitempty"` // may see all tenants, and what concerns all
		Expires  time.Time   `json:"expires,omitzero"`
		Links    bool        `json:"links,omitempty"` // the login takes a token from a link
	}{Tenants: []tenant.ID{}, Links: s.Links}
	if one := s.sessionOf(r); one != nil {
		out.Tenants, out.Operator, out.Expires = append(out.Tenants, one.tenants...), one.operator, one.expires
	}
	if out.Operator {
		ctx, cancel := context.WithTimeout(r.Context(), s.Timeout)
		defer cancel()
		all, err := s.everyone.get(ctx)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		for _, t := range all.tenants {
			if !slices.Contains(out.Tenants, t.Tenant) {
				out.Tenants = append(out.Tenants, t.Tenant)
			}
		}
	}
	s.send(w, r, out)
}

type contextKey struct{}

// asked is the tenant that an address names, and the session of the request.
type asked struct {
	session *session
	tenant  string
}

// ofTenant passes requests on with their session and the tenant that they name.
func (s *Console) ofTenant(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := context.WithValue(r.Context(), contextKey{}, asked{s.sessionOf(r), r.PathValue("tenant")})
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// ownTenant lets only a tenant through that the session may see. It is a tenant.Resolver.
type ownTenant struct{}

// Resolve implements tenant.Resolver. A tenant that does not exist and one that the user may not see get the same
// answer.
func (ownTenant) Resolve(ctx context.Context, _ tenant.Request) (tenant.ID, error) {
	a, ok := ctx.Value(contextKey{}).(asked)
	if !ok {
		return tenant.ID{}, errors.New("web: a request without its session")
	}
	if a.session == nil {
		return tenant.ID{}, tenant.ErrNoCredentials
	}
	id, err := tenant.Parse(a.tenant)
	if err != nil || !a.session.may(id) {
		return tenant.ID{}, tenant.ErrForbidden
	}
	return id, nil
}
