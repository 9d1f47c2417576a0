package tenants

import "testing"

// WithPages returns the options with pages of that many rows.
func WithPages(o EraseOptions, rows int) EraseOptions {
	o.countPage, o.deletePage = rows, rows
	return o
}

// WithPage returns the options with pages of that many rows.
func WithPage(o UsageOptions, rows int) UsageOptions {
	o.page = rows
	return o
}

// LowerMarks lowers how many marks may be in force, of all tenants and of one, for a test.
func LowerMarks(t testing.TB, all, one int) {
	a, o := mostMarks, mostOfTenant
	t.Cleanup(func() { mostMarks, mostOfTenant = a, o })
	mostMarks, mostOfTenant = all, one
}

// WithRemovalPages returns the options with pages of that many rows.
func WithRemovalPages(o RemoveOptions, rows int) RemoveOptions {
	o.countPage, o.deletePage = rows, rows
	return o
}
