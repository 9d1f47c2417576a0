package main

import (
	"strings"
	"testing"
)

// A misspelt name is an error, not a tenant without data. A tenant that has only a profile exists.
func TestTenantThatDoesNotExist(t *testing.T) {
	dir := filled(t, 1)
	for _, command := range []string{"export nobody --file -", "usage nobody", "erase nobody --yes", "erase nobody --dry-run", "erase nobody --yes --entity device=roof"} {
		out, _, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir, "tenants"}, strings.Fields(command)...)...)
		if want(t, exitFailed, err, command); err == nil || !strings.Contains(err.Error(), "there is no tenant nobody") || out != "" {
			t.Errorf("%s prints %q and ends with %v, want an error that the tenant does not exist", command, out, err)
		}
	}
	out, _, err := tidectl(t, t.Context(), "", "--dir", dir, "tenants", "list")
	if want(t, 0, err, "list"); strings.Contains(out, "nobody") {
		t.Errorf("a refused erasure left %s", out)
	}
	_, _, err = tidectl(t, t.Context(), "", "--dir", dir, "tenants", "onboard", "somebody", "--name", "Somebody")
	want(t, 0, err, "onboard")
	for _, command := range []string{"usage somebody", "export somebody --file -", "erase somebody --dry-run", "export acme --file -"} {
		_, _, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir, "tenants"}, strings.Fields(command)...)...)
		want(t, 0, err, command)
	}
	_, _, err = tidectl(t, t.Context(), "", "--dir", dir, "tenants", "onboard", "somebody", "--name", "Another")
	if want(t, exitFailed, err, "onboard again"); !strings.Contains(err.Error(), "--replace") {
		t.Errorf("onboarding again with another name: %v, want an error that names --replace", err)
	}
	_, _, err = tidectl(t, t.Context(), "", "--dir", dir, "tenants", "erase", "acme", "--dry-run", "--entity", "site=x")
	if want(t, exitFailed, err, "erase by a field that is none"); !strings.Contains(err.Error(), "temps: device") {
		t.Errorf("erasing an entity by a wrong field: %v, want the key fields", err)
	}
}

// Times are dates, or have a zone; without a zone they are in UTC.
func TestTimes(t *testing.T) {
	dir := filled(t, 3) // from 2026-05-28T20:26:40Z on, a second apart
	for command, points := range map[string]string{
		"--from 2026-05-28": `"points":3`, "--from 2026-05-29": `"points":0`, "--to 2026-05-29": `"points":3`,
		"--from 2026-05-28T20:26:41Z": `"points":2`, "--from 2026-05-28T20:26:41": `"points":2`, "--from 2026-05-28T22:26:42+02:00": `"points":1`,
		"--from 2026-05-28T20:27": `"points":0`,
	} {
		out, _, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir, "tenants", "export", "acme", "--file", "-"}, strings.Fields(command)...)...)
		if want(t, 0, err, command); !strings.Contains(out, points) {
			t.Errorf("export %s prints %s, want %s", command, out, points)
		}
	}
	_, _, err := tidectl(t, t.Context(), "", "--dir", dir, "tenants", "export", "acme", "--file", "-", "--from", "2026-05-29", "--to", "2026-05-28")
	if want(t, exitFailed, err, "ends that are mixed up"); !strings.Contains(err.Error(), "interval") {
		t.Errorf("swapped times: %v, want an error about the interval", err)
	}
}

func TestVersionAndCompletion(t *testing.T) {
	out, _, err := tidectl(t, t.Context(), "", "--version")
	if want(t, 0, err, "--version"); !strings.HasPrefix(out, "tidectl version ") {
		t.Errorf("--version prints %q", out)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		out, _, err := tidectl(t, t.Context(), "", "completion", shell)
		if want(t, 0, err, shell); !strings.Contains(out, "tidectl") || !strings.Contains(out, "--generate-shell-completion") {
			t.Errorf("the script for %s is %.200s", shell, out)
		}
	}
	out, _, err = tidectl(t, t.Context(), "", "tenants", "--generate-shell-completion")
	if want(t, 0, err, "completing"); !strings.Contains(out, "export") {
		t.Errorf("completion after tenants offers %q", out)
	}
}
