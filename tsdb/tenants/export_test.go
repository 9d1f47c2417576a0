package tenants

import "testing"

// WithPages returns the options with pages of n rows.
func WithPages(o EraseOptions, rows int) EraseOptions {
	o.countPage, o.deletePage = rows, rows
	return o
}

// WithPage returns the options with pages of n rows.
func WithPage(o UsageOptions, rows int) UsageOptions {
	o.page = rows
	return o
}

// LowerMarks lowers the maximum number of active marks, of all tenants and of one, during a test.
func LowerMarks(t testing.TB, all, one int) {
	a, o := mostMarks, mostOfTenant
	t.Cleanup(func() { mostMarks, mostOfTenant = a, o })
	mostMarks, mostOfTenant = all, one
}

// WithRemovalPages returns the options with pages of n rows.
func WithRemovalPages(o RemoveOptions, rows int) RemoveOptions {
	o.countPage, o.deletePage = rows, rows
	return o
}
