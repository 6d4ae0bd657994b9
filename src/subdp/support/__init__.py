"""What every other folder uses: errors, files, settings, engines, plug-ins, progress, cache. No torch."""
