"""What every other folder uses: errors, files, settings, plug-ins, progress, cache. No torch."""
