package tenant_test

import (
	"context"
	"fmt"

	"github.com/tidemark-go/tidemark/tenant"
)

func ExampleID() {
	acme, err := tenant.Parse("acme")
	fmt.Println(acme, err)

	_, err = tenant.Parse("acme#2")
	fmt.Println(err)
	// Output:
	// acme <nil>
	// tenant: invalid ID: tenant is "acme#2" with byte 0x23 at 4; want 1 to 64 bytes of A-Z a-z 0-9 . _ -
}

func ExampleFromContext() {
	ctx := tenant.NewContext(context.Background(), tenant.MustParse("acme"))
	id, ok := tenant.FromContext(ctx)
	fmt.Println(id, ok)
	// Output: acme true
}
