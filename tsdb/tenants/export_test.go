package tenants

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
