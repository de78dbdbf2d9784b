"""Routes of signing in: open to anybody, but for those that need somebody signed in."""

from typing import Final

from gatewayd.control.people import oidc_routes, sign_in, welcome
from gatewayd.control.web.route import Route

ROUTES: Final = (
    Route("GET", "/welcome/<token>", welcome.welcome_page, door="open"),
    Route("POST", "/welcome/<token>", welcome.welcome, door="open", body=welcome.WelcomeForm),
    Route("GET", "/sign-in", sign_in.sign_in_page, door="open"),
    Route("POST", "/sign-in", sign_in.sign_in, door="open", body=sign_in.SignInForm),
    Route("POST", "/sign-in/passkey/options", sign_in.passkey_options, door="open"),
    Route("POST", "/sign-in/passkey", sign_in.passkey_sign_in, door="open", body=bytes),
    Route("GET", "/sign-in/oidc/start/<provider>", oidc_routes.start, door="open"),
    Route("GET", "/sign-in/oidc/callback", oidc_routes.callback, door="open"),
    Route("POST", "/sign-out", sign_in.sign_out, door="person"),
    Route("GET", "/again", sign_in.again_page, door="person"),
    Route("POST", "/again", sign_in.again, door="person", body=sign_in.AgainForm),
)
