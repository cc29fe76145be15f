"""Domains of lockdown whose values do not move: what clients read, as phones have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from orchestrator.virtual.wire import Plist

_DOMAINS: Final[dict[str, Plist]] = {
    "com.apple.Accessibility": {
        "AssistiveTouchEnabledByiTunes": 0,
        "ClosedCaptioningEnabledByiTunes": 0,
        "InvertDisplayEnabledByiTunes": 0,
        "MonoAudioEnabledByiTunes": 0,
        "SpeakAutoCorrectionsEnabledByiTunes": 0,
        "VoiceOverTouchEnabledByiTunes": 0,
        "ZoomTouchEnabledByiTunes": 0,
    },
    "com.apple.fairplay": {},
    "com.apple.international": {
        "Keyboard": "en_US",
        "Language": "en",
        "Locale": "en_US",
        "SupportedKeyboards": ["en_US", "emoji"],
        "SupportedLanguages": ["en", "de", "fr", "ja", "zh-Hans"],
        "SupportedLocales": ["en_US", "de_DE", "fr_FR", "ja_JP", "zh_CN"],
    },
    "com.apple.iTunes": {
        "AppleDRMVersion": {"Format": 2, "Maximum": 4, "Minimum": 0},
        "MinITunesVersion": "12.12",
        "SyncDataClasses": ["Contacts", "Calendars", "Bookmarks"],
    },
    "com.apple.mobile.backup": {"CloudBackupEnabled": False, "WillEncrypt": False},
    "com.apple.mobile.data_sync": {},
    "com.apple.mobile.debug": {"EnableVPNLogs": False},
    "com.apple.mobile.internal": {"DevToolsAvailable": "Standard", "IsInternal": False},
    "com.apple.mobile.iTunes": {
        "ArtworkUseColorMap": True,
        "BatteryPollInterval": 60,
        "DBVersion": 5,
        "MinITunesVersion": "12.12",
    },
    "com.apple.mobile.iTunes.store": {},
    "com.apple.mobile.lockdown_cache": {"ActivationState": "Activated"},
    "com.apple.mobile.mobile_application_usage": {},
    "com.apple.mobile.nikita": {},
    "com.apple.mobile.restriction": {"ProhibitAppDelete": False, "ProhibitAppInstall": False},
    "com.apple.mobile.sync_data_class": {"Bookmarks": {}, "Calendars": {}, "Contacts": {}},
    "com.apple.mobile.tethered_sync": {},
    "com.apple.mobile.user_preferences": {"DiagnosticsAllowed": False},
    "com.apple.mobile.wireless_lockdown": {
        "EnableWifiConnections": False,
        "SupportsWifi": True,
        "SupportsWifiSyncing": True,
    },
    "com.apple.purplebuddy": {"SetupDone": True, "SetupState": "SetupUsingiTunes"},
    "com.apple.springboard.curvedBatteryCapacity": {},
}


def constant_domain(name: str) -> Plist:
    """Return the values of a domain; empty if the phone has no such domain."""
    return _DOMAINS.get(name, {})
