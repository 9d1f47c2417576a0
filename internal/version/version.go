// Package version holds the version of this module.
package version

// Version is the version of this module by semantic versioning, without a "v". Between releases it is the next one with
// "-dev".
const Version = "0.1.0-dev"
