package edge

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
)

var acme, other = tenant.MustParse("acme"), tenant.MustParse("other")

func TestTokens(t *testing.T) {
	var ts Tokens
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("a=b")))
	if err := errors.Join(ts.Add("secret=acme"), ts.AddHashed(digest+"=other")); err != nil {
		t.Fatal(err)
	}
	for secret, want := range map[string]tenant.ID{"secret": acme, "a=b": other, "": {}, "Secret": {}, digest: {}} {
		if id, ok := ts.Tenant(secret); id != want || ok == want.IsZero() {
			t.Errorf("token %q belongs to %v, %v; want %v", secret, id, ok, want)
		}
	}
	for _, text := range []string{"", "=acme", "hush", "hush=", "hush=a/b", "secret=other", "a=b=acme"} {
		if err := ts.Add(text); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("Add(%q): %v, want an error without the secret", text, err)
		}
	}
	for _, text := range []string{
		"hush=acme", "sha256:=acme", "sha256:hush=acme", digest, digest + "=acme", digest[:len(digest)-2] + "=acme", digest + "00=acme", strings.Replace(digest, "sha256:", "", 1) + "=acme",
	} {
		if err := ts.AddHashed(text); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("AddHashed(%q): %v, want an error without the secret", text, err)
		}
	}
	if ts.Len() != 2 {
		t.Errorf("%d tokens, want 2", ts.Len())
	}
}

func TestLinesOfAFileThatEverybodyMayWrite(t *testing.T) {
	name := filepath.Join(t.TempDir(), "secrets")
	if err := os.WriteFile(name, []byte("# comment\n\n one \ntwo"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	read := func() error {
		return Lines(name, func(text string) error { got = append(got, text); return nil })
	}
	if err := read(); err != nil || strings.Join(got, ",") != "one,two" {
		t.Errorf("%q, %v", got, err)
	}
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such mode")
	}
	if err := os.Chmod(name, 0o602); err != nil {
		t.Fatal(err)
	}
	got = nil
	if err := read(); err == nil || got != nil {
		t.Errorf("a file that every user may write: %q, %v; want an error", got, err)
	}
}

// TestShares: tenants never take more than the total, one tenant never gets more than 7/8, and a tenant that holds
// nothing gets something while anything is free.
func TestShares(t *testing.T) {
	const total = 800
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 0))
		s := NewShares(total)
		held, free := map[tenant.ID]int64{}, int64(total)
		ids := []tenant.ID{acme, other, tenant.MustParse("third")}
		for range 2000 {
			id, n := ids[r.IntN(len(ids))], 1+r.Int64N(20)
			if r.IntN(3) == 0 && held[id] > 0 {
				n = min(n, held[id])
				s.Return(id, n)
				held[id] -= n
				free += n
				continue
			}
			ok := s.Take(id, n)
			if ok {
				held[id] += n
				free -= n
			}
			switch {
			case free < 0:
				t.Fatalf("%d of %d are taken", total-free, total)
			case held[id] > total*7/8:
				t.Fatalf("one tenant holds %d of %d", held[id], total)
			case !ok && held[id] == 0 && n <= free:
				t.Fatalf("%d units refused to a tenant that holds none, with %d free", n, free)
			}
		}
		for id, n := range held {
			s.Return(id, n)
		}
		if len(s.held) != 0 || s.free != total {
			t.Errorf("in the end %v are held, and %d free", s.held, s.free)
		}
	}
	if s := NewShares(1); !s.Take(acme, 1) || s.Take(other, 1) {
		t.Error("a single unit was not given to exactly one tenant")
	}
}

func TestReadBody(t *testing.T) {
	text := strings.Repeat("0123456789", 20_000) // several chunks
	for name, r := range map[string]io.Reader{"whole": strings.NewReader(text), "slow": iotest.OneByteReader(strings.NewReader(text)), "with EOF": iotest.DataErrReader(strings.NewReader(text))} {
		s := NewShares(1 << 20)
		body, release, err := ReadBody(r, acme, s)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, err := io.ReadAll(body); string(got) != text || err != nil {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if s.free == 1<<20 {
			t.Errorf("%s: nothing was taken", name)
		}
		if release(); s.free != 1<<20 {
			t.Errorf("%s: %d bytes were not released", name, 1<<20-s.free)
		}
	}
}

// TestABodyThatIsCut: a body that was cut off is an error, so that its beginning is not used as the whole.
func TestABodyThatIsCut(t *testing.T) {
	s := NewShares(1 << 20)
	for _, cut := range []error{io.ErrUnexpectedEOF, errors.New("connection reset")} {
		_, release, err := ReadBody(io.MultiReader(strings.NewReader("a line\nand ha"), iotest.ErrReader(cut)), acme, s)
		if !errors.Is(err, cut) {
			t.Errorf("error %v, want %v", err, cut)
		}
		release()
	}
	_, release, err := ReadBody(strings.NewReader(strings.Repeat("x", 1<<20)), acme, s)
	if !errors.Is(err, ErrNoRoom) {
		t.Errorf("a body larger than the share: %v, want ErrNoRoom", err)
	}
	if release(); s.free != 1<<20 {
		t.Errorf("%d bytes were not released", 1<<20-s.free)
	}
}

func TestReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		down := errors.New("down")
		var answer error
		r := NewReady(func(ctx context.Context) error {
			asked.Add(1)
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > 2*time.Second {
				t.Errorf("the check's deadline is %v, want 2s", deadline)
			}
			time.Sleep(time.Second / 2)
			return answer
		})
		for round, want := range []error{nil, down, nil} {
			answer = want
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() {
					if err := r.Err(); err != want {
						t.Errorf("round %d: %v, want %v", round, err, want)
					}
				})
			}
			all.Wait()
			if n := asked.Load(); n != int64(round+1) {
				t.Errorf("round %d: %d checks of the store", round, n)
			}
			time.Sleep(time.Second)
		}
	})
}

// log is written and read by several goroutines.
type log struct {
	mu   sync.Mutex
	text []byte
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	return len(p), nil
}

// take returns what was written since its last call.
func (l *log) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := string(l.text)
	l.text = nil
	return text
}

// TestLimitsAreReadAgain: a changed file applies within seconds, and an invalid one changes nothing.
func TestLimitsAreReadAgain(t *testing.T) {
	name := filepath.Join(t.TempDir(), "limits.json")
	set := func(text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set(`{"defaults": {"entities": 1}}`)
	synctest.Test(t, func(t *testing.T) {
		l, err := OpenLimits(name)
		if err != nil {
			t.Fatal(err)
		}
		var logged log
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go l.Watch(ctx, slog.New(slog.NewTextHandler(&logged, nil)))
		for _, step := range []struct {
			text string
			want int64
			says int // number of log lines
		}{
			{`{"defaults": {"entities": 1}}`, 1, -1}, // the file may or may not look changed
			{`{"defaults": {"entities": 20}}`, 20, 1},
			{`{"defaults": {"entities": "no"}}`, 20, 1},
			{"", 20, 1},
			{`{"defaults": {"entities": 300}}`, 300, 1},
		} {
			if set(step.text); step.text == "" {
				_ = os.Remove(name)
			}
			logged.take()
			time.Sleep(3 * reread)
			synctest.Wait()
			if got := l.Limiter.Limits(acme).Entities; got != step.want {
				t.Errorf("%s: %d entities, want %d", step.text, got, step.want)
			}
			text := logged.take()
			if n := strings.Count(text, "\n"); step.says >= 0 && n != step.says {
				t.Errorf("%s: the log has %d lines, want %d: %s", step.text, n, step.says, text)
			}
		}
	})
	if _, err := OpenLimits("nowhere"); err == nil {
		t.Error("reading a missing file succeeds")
	}
	if l, err := OpenLimits(""); err != nil || l.Limiter != nil {
		t.Errorf("without a file: %v, %v; want no limiter", l.Limiter, err)
	}
}

func TestLocalHost(t *testing.T) {
	h := LocalHost(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for host, want := range map[string]int{
		"localhost": 200, "localhost:9464": 200, "127.0.0.1:9464": 200, "127.9.9.9": 200, "[::1]:9464": 200, "[::1]": 200,
		"": 403, "evil.example": 403, "evil.example:9464": 403, "192.168.1.1:9464": 403, "127.0.0.1.evil.example": 403, "[": 403, "[]": 403,
	} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Host = host
		rec := httptest.NewRecorder()
		if h.ServeHTTP(rec, r); rec.Code != want {
			t.Errorf("Host %q: %d, want %d", host, rec.Code, want)
		}
	}
}
