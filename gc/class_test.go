package gc

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestClassValidate(t *testing.T) {
	for _, name := range []string{"d90", "0", "A-b_c", strings.Repeat("x", 32)} {
		if err := (Class{Name: name}).Validate(); err != nil {
			t.Errorf("class %q: %v, want nil", name, err)
		}
	}
	for _, name := range []string{"", "_meta", "-x", "a.b", ".", "a b", "é", "a\x00", strings.Repeat("x", 33)} {
		if err := (Class{Name: name, Policy: MaxAge(day)}).Validate(); !errors.Is(err, ErrInvalid) {
			t.Errorf("class %q could clash with the store's families or be refused by the service; got %v", name, err)
		}
	}
	for _, test := range []struct {
		class Class
		want  string
	}{
		{Class{Policy: MaxAge(day)}, "class is empty; want 1 to 32 bytes of A-Z a-z 0-9 _ -, starting with a letter or a digit"},
		{Class{Name: "a#b"}, `class is "a#b"; want 1 to 32 bytes of A-Z a-z 0-9 _ -, starting with a letter or a digit`},
		{Class{Name: "d90", Policy: Any()}, "class d90: any is empty; want at least one policy"},
		{Class{Name: "d90", ColdAfter: 30*day - time.Second}, "class d90: ColdAfter is 719h59m59s; want 0 for never, or a whole number of seconds of at least 30 days"},
		{Class{Name: "d90", ColdAfter: 30*day + 1}, "class d90: ColdAfter is 720h0m0.000000001s; want 0 for never, or a whole number of seconds of at least 30 days"},
		{Class{Name: "d90", ColdAfter: -1}, "class d90: ColdAfter is -1ns; want 0 for never, or a whole number of seconds of at least 30 days"},
		{Class{Name: "d90", Policy: MaxAge(90 * day), ColdAfter: 90 * day}, "class d90: ColdAfter is 2160h0m0s; want less than the age of 90d at which the policy removes the data"},
	} {
		err := test.class.Validate()
		if err == nil || err.Error() != "gc: invalid retention: "+test.want || !errors.Is(err, ErrInvalid) {
			t.Errorf("%v.Validate() = %v; want %v", test.class, err, test.want)
		}
	}
}

func TestClassColdAfter(t *testing.T) {
	for _, c := range []Class{
		{Name: "keep", ColdAfter: 30 * day},
		{Name: "d90", Policy: MaxAge(90 * day), ColdAfter: 90*day - time.Second},
		{Name: "v", Policy: MaxVersions(1), ColdAfter: 1 << 62 / time.Second * time.Second},
	} {
		if err := c.Validate(); err != nil {
			t.Errorf("%v: %v", c, err)
		}
	}
	d90 := Class{Name: "d90", Policy: MaxAge(90 * day), ColdAfter: 30 * day}
	if got := d90.String(); got != "d90 (maxage=90d, cold after 30d)" {
		t.Errorf("String = %q", got)
	}
	if d90.Equal(Class{Name: "d90", Policy: MaxAge(90 * day)}) {
		t.Error("a class whose data may be cold equals one whose data may not")
	}
	if (Class{ColdAfter: 30 * day}).IsZero() {
		t.Error("a class with ColdAfter alone would silently be replaced by the default")
	}
}

func TestClassZeroAndEqual(t *testing.T) {
	if !(Class{}).IsZero() || !(Class{Policy: All(Never(), MaxAge(day))}).IsZero() {
		t.Error("IsZero = false for a class without a name that keeps everything")
	}
	for _, c := range []Class{{Name: "x"}, {Policy: MaxAge(day)}, {Policy: MaxAge(0)}} {
		if c.IsZero() {
			t.Errorf("IsZero of %v = true", c)
		}
	}
	d90 := Class{Name: "d90", Policy: MaxAge(90 * day)}
	if !d90.Equal(Class{Name: "d90", Policy: Any(MaxAge(90*day), MaxAge(91*day))}) {
		t.Error("two classes that keep the same cells in the same family differ")
	}
	if d90.Equal(Class{Name: "d90", Policy: MaxAge(91 * day)}) || d90.Equal(Class{Name: "d91", Policy: MaxAge(90 * day)}) {
		t.Error("two classes with another name or policy are equal")
	}
}
