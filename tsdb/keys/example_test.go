package keys_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/keys"
)

func ExampleCheckPersonal() {
	ctx := context.Background()
	logins := tsdb.MustDefine("logins", tsdb.Key("site", "user"), codec.String(), tsdb.SchemaOptions{CheckKeys: keys.CheckPersonal})
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		panic(err)
	}
	defer store.Close()
	if err := store.Ensure(ctx, logins); err != nil {
		panic(err)
	}
	repo := logins.For(store, tenant.MustParse("acme"))

	err = repo.Put(ctx, tsdb.NewEntity("berlin", "anna@example.com"), time.Now(), "in")
	fmt.Println(errors.Is(err, tsdb.ErrInvalid))
	fmt.Println(err)

	fmt.Println(repo.Put(ctx, tsdb.NewEntity("berlin", "u-4711"), time.Now(), "in"))
	// Output:
	// true
	// tsdb: write rejected before it was sent: tsdb: invalid input: keys: looks like personal data: key field user is like a mail address (not shown); want text that identifies no person, such as an opaque ID or a keyed hash
	// <nil>
}

// The field serial contains numbers that may look like card numbers.
func ExampleCheckPersonal_fields() {
	check := func(field, part string) error {
		if field == "serial" {
			return nil
		}
		return keys.CheckPersonal(field, part)
	}
	fmt.Println(check("serial", "4111111111111111"))
	fmt.Println(check("owner", "4111111111111111"))
	// Output:
	// <nil>
	// keys: looks like personal data: key field owner is like a payment card number (not shown); want text that identifies no person, such as an opaque ID or a keyed hash
}

func ExampleHasher() {
	key := []byte(strings.Repeat("k", 32)) // a secret: 32 random bytes, stored with the program's other secrets
	hasher, err := keys.NewHasher(key)
	if err != nil {
		panic(err)
	}
	owner := func(mail string) string { return hasher.Part("owner", strings.ToLower(mail)) }
	e := tsdb.NewEntity("berlin", owner("Anna@example.com"))
	fmt.Println(e == tsdb.NewEntity("berlin", owner("anna@example.com")), len(e.Parts()[1]))
	// Output: true 24
}
