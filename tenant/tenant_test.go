package tenant_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/tenant"
)

func TestParse(t *testing.T) {
	for _, name := range []string{"a", "acme", "ACME-2.eu_west", "0", "...", "-", strings.Repeat("x", 64)} {
		id, err := tenant.Parse(name)
		if err != nil || id.String() != name {
			t.Errorf("Parse(%q) = %v, %v; want the same name", name, id, err)
		}
	}
	for _, name := range []string{
		"", ".", "..", strings.Repeat("x", 65), "a#b", "a b", "a!b", "a%23", "a/b", "käse", "a\x00", "a\n", "\xff",
	} {
		id, err := tenant.Parse(name)
		if !errors.Is(err, tenant.ErrInvalid) {
			t.Errorf("Parse(%q) = %v, %v; want ErrInvalid, because keys of two tenants could become equal", name, id, err)
		}
		if !id.IsZero() {
			t.Errorf("Parse(%q) returns %v with its error, want the zero ID", name, id)
		}
	}
}

func TestTextForms(t *testing.T) {
	var got struct{ T tenant.ID }
	if err := json.Unmarshal([]byte(`{"T":"acme"}`), &got); err != nil || got.T != tenant.MustParse("acme") {
		t.Errorf("unmarshal: %v, %v", got, err)
	}
	if err := json.Unmarshal([]byte(`{"T":"a#b"}`), &got); !errors.Is(err, tenant.ErrInvalid) || got.T.String() != "acme" {
		t.Errorf("unmarshal of a bad name: %v, %v; want ErrInvalid and the old value kept", got, err)
	}
	if _, err := json.Marshal(tenant.ID{}); !errors.Is(err, tenant.ErrInvalid) {
		t.Errorf("marshal of the zero ID: %v, want ErrInvalid", err)
	}
}

func TestContext(t *testing.T) {
	if id, ok := tenant.FromContext(context.Background()); ok {
		t.Errorf("an empty context carries %v", id)
	}
	acme := tenant.MustParse("acme")
	if id, ok := tenant.FromContext(tenant.NewContext(context.Background(), acme)); !ok || id != acme {
		t.Errorf("FromContext = %v, %v", id, ok)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("acme")
	f.Add("a#b")
	f.Fuzz(func(t *testing.T, name string) {
		id, err := tenant.Parse(name)
		if (err == nil) == id.IsZero() {
			t.Fatalf("Parse(%q) = %v, %v", name, id, err)
		}
		if err == nil && strings.ContainsAny(name, "#!% \x00") {
			t.Fatalf("Parse(%q) accepts a delimiter", name)
		}
	})
}
