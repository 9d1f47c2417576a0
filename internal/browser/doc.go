// Package browser tests pages in a headless Chromium, and skips where none is installed. It is a module of its own, so
// no user's module requires what drives the browser.
package browser
