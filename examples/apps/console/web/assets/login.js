// The login form: says why an attempt failed, and goes on at once if this browser has a session.
import { applyTheme } from "./theme.js";

applyTheme();
const query = new URLSearchParams(location.search);
const next = query.get("next") || "";
document.getElementById("next").value = next;

const reasons = {
  token: "This token is not known.",
  often: "Too many wrong tokens. Wait a minute, then try again.",
  full: "This session has 16 tenants, which is the most. Log out first.",
  over: "The session is over. Log in again to continue.",
  link: "This console takes no token from a link. Type or paste your own token.",
};
function explain(reason) {
  if (!Object.hasOwn(reasons, reason)) return;
  const why = document.getElementById("why");
  why.textContent = reasons[reason];
  why.hidden = false;
}
explain(query.get("why"));

// The part behind the # does not go to the server. The address forgets it at once.
const token = new URLSearchParams(location.hash.slice(1)).get("token");
if (token) history.replaceState(null, "", location.pathname + location.search);

// A link from another site brings no cookie to its first request, so the server sends even known users here.
const session = await (await fetch("/api/session")).json();
if (token && session.links) {
  document.getElementById("token").value = token;
  document.querySelector("form").requestSubmit();
} else if (token) {
  explain("link"); // anybody can make one, and it would show the data of its token's tenant
} else if (query.has("add")) {
  document.getElementById("note").textContent = "The session keeps the tenants that it has, and gets the tenant of this token.";
} else if ([null, "over"].includes(query.get("why")) && (session.tenants?.length || session.operator)) {
  location.replace(/^\/[a-z]/.test(next) ? next : "/fleet");
}
