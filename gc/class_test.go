package gc

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

func TestClassValidate(t *testing.T) {
	for _, name := range []string{"d90", "0", "A-b_c", strings.Repeat("x", 32)} {
		if err := (Class{Name: name}).Validate(); err != nil {
			t.Errorf("class %q: %v, want nil", name, err)
		}
	}
	for _, name := range []string{"", "_meta", "-x", "a.b", ".", "a b", "é", "a\x00", strings.Repeat("x", 33)} {
		if err := (Class{Name: name, Policy: MaxAge(day)}).Validate(); !errors.Is(err, invalid.ErrPolicy) {
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
	} {
		err := test.class.Validate()
		if err == nil || err.Error() != "gc: invalid retention: "+test.want || !errors.Is(err, invalid.ErrPolicy) {
			t.Errorf("%v.Validate() = %v; want %v", test.class, err, test.want)
		}
	}
}

func TestClassEqual(t *testing.T) {
	d90 := Class{Name: "d90", Policy: MaxAge(90 * day)}
	if !d90.Policy.Equal(Any(MaxAge(90*day), MaxAge(91*day))) {
		t.Error("two classes that keep the same cells in the same family differ")
	}
	if d90.Policy.Equal(MaxAge(91 * day)) {
		t.Error("two classes with another name or policy are equal")
	}
}
